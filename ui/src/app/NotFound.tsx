import { Anchor, Stack, Text, Title } from "@mantine/core";
import { Link } from "@tanstack/react-router";

export function NotFound() {
  return (
    <Stack p="xl" gap="sm">
      <Title order={1} size="h2">
        Page not found
      </Title>
      <Text>
        The URL may be mistyped or from an older version.{" "}
        <Anchor component={Link} to="/runs" underline="always">
          Go to runs
        </Anchor>
        .
      </Text>
    </Stack>
  );
}
