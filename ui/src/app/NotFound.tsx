import { Anchor, Stack, Text, Title } from "@mantine/core";
import { Link } from "@tanstack/react-router";

export function NotFound() {
  return (
    <Stack p="xl" gap="sm">
      <Title order={1} size="h2">
        There is no page at this address
      </Title>
      <Text>
        The address may be of an older version, or mistyped.{" "}
        <Anchor component={Link} to="/runs" underline="always">
          See the runs
        </Anchor>
        .
      </Text>
    </Stack>
  );
}
