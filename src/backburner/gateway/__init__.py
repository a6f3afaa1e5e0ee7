"""Traffic to other people's servers: addresses checked, sizes and times bounded."""
