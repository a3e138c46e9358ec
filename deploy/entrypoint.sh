#!/bin/sh
# trunkline, with its secrets from files: NAME_FILE=/run/secrets/x sets NAME to what is in the file.
set -eu

# By name: TRUNKLINE_KAFKA_KEY_FILE and its like are settings of their own. PGPASSWORD is the password of a
# TRUNKLINE_STORE that has none in it.
for name in TRUNKLINE_STORE TRUNKLINE_SECRET_KEY TRUNKLINE_KAFKA_SASL_PASSWORD TRUNKLINE_API_KEY PGPASSWORD; do
  eval "file=\${${name}_FILE:-}"
  [ -n "$file" ] || continue
  if [ ! -r "$file" ]; then
    echo "error: ${name}_FILE names a file that cannot be read: $file" >&2
    exit 5
  fi
  eval "$name=\$(cat \"\$file\")"
  export "${name?}"
  unset "${name}_FILE"
done

exec trunkline "$@"
