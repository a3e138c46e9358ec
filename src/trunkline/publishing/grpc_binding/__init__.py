"""The gRPC binding of A2A 1.0. Its libraries are an extra, trunkline[grpc], so it is imported only where it is used."""
