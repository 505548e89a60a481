"""The one judge of numbers: metrics, tiers, rules, classes, guards; knows no tensor library."""
