#!/bin/sh
# Installs what Kafka and PostgreSQL need on a Debian-like machine, if it is missing: install.sh backends.
# Without an argument, also what the tests of the web UI and of the container image need: make services.
# Elsewhere it says what is missing. Tests that need it are then skipped, or fail where CI is set.
set -eu

has() { command -v "$1" >/dev/null 2>&1; }

has_initdb() {
  has initdb && return 0
  for program in /usr/lib/postgresql/*/bin/initdb; do
    [ -x "$program" ] && return 0
  done
  has pg_config && [ -x "$(pg_config --bindir)/initdb" ]
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif [ -t 0 ]; then
    sudo "$@"
  else
    # There is no one to type a password.
    sudo -n "$@"
  fi
}

install_packages() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install --quiet --quiet --yes --no-install-recommends "$@" >&2
}

packages=
has java || [ -x "${JAVA_HOME:-/nowhere}/bin/java" ] || packages="$packages default-jre-headless"
has mvn || packages="$packages maven"
has_initdb || packages="$packages postgresql"
if [ "${1:-}" != backends ]; then
  has chromium-headless-shell || has chromium || packages="$packages chromium-headless-shell fonts-dejavu-core"
  has buildah || packages="$packages buildah"
  has mmdebstrap || packages="$packages mmdebstrap"
fi
[ -n "$packages" ] || exit 0

if ! has apt-get; then
  echo "Not found, and there is no apt-get to install it (Debian's names):$packages" >&2
  [ -z "${CI:-}" ] || exit 1
  exit 0
fi

echo "Installing$packages (once) ..." >&2
as_root apt-get update --quiet --quiet >&2
# Chromium without its windows, which tests pages with half the work, is not everywhere a package of its own.
apt-cache show chromium-headless-shell >/dev/null 2>&1 ||
  packages=$(echo "$packages" | sed 's/chromium-headless-shell/chromium/')
case "$packages" in
  *postgresql*)
    # The package would make and start a cluster of the whole machine; ours are private.
    install_packages postgresql-common
    as_root sed -i -E 's/^#?[[:space:]]*create_main_cluster.*/create_main_cluster = false/' \
      /etc/postgresql-common/createcluster.conf
    ;;
esac
# shellcheck disable=SC2086  # a list of names
install_packages $packages
