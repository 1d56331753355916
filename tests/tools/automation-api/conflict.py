"""Pulumi's Automation API on a stack that another client updates: prints what it tells of it, as JSON.

The argument is the stack. The client and its server are in the environment.
"""

import json
import sys

from pulumi import automation

stack = automation.select_stack(stack_name=sys.argv[1], work_dir=".")
told = {"listed": {one.name: one.update_in_progress for one in stack.workspace.list_stacks()}}
try:
    stack.up()
    told["up"] = "done"
except automation.CommandError as error:
    told["up"] = type(error).__name__
try:
    automation.create_stack(stack_name=sys.argv[1], work_dir=".")
except automation.CommandError as error:
    told["create"] = type(error).__name__
try:
    automation.select_stack(stack_name="nowhere", work_dir=".")
except automation.CommandError as error:
    told["select"] = type(error).__name__
print(json.dumps(told))
