"""Traffic to outside servers: addresses checked, sizes and times bounded."""
