"""ACLNN operators as subjects of `check`: their specs, and how a case of one runs."""
