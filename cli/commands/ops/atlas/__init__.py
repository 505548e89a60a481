"""The operator atlas: every ACLNN operator of every known CANN version, as data and as pages."""
