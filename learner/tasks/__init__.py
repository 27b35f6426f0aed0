"""What the learner's workers do: one module per kind of job. Each step ends in one transaction with its job."""
