"""PURE: texts for approvers: arguments, diffs, previews, groups, the offer of a rule."""
