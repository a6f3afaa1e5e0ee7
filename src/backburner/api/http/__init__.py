"""HTTP plumbing: authentication, limits, pagination, idempotency, problem details, SSE."""
