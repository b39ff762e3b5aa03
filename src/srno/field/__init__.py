"""A picture as a function: where and in what order the operator is evaluated."""
