"""Prints a SAM template as the CloudFormation template that it becomes, or one of CloudFormation, or a YAML file as it is: JSON each.

    python look.py sam template.yaml
    python look.py cfn store.yaml
    python look.py yaml Pulumi.yaml
"""

import json
import os
import sys

import yaml

kind, path = sys.argv[1:]

if kind == "yaml":
    with open(path, encoding="utf-8") as file:
        print(json.dumps(yaml.safe_load(file)))
    sys.exit()

# It is asked for, and changes nothing that is looked at.
os.environ["AWS_DEFAULT_REGION"] = "us-east-1"

from samtranslator.public.translator import ManagedPolicyLoader
from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse


class NoManagedPolicies(ManagedPolicyLoader):
    """Names of managed policies are looked up in an account. The tests have none."""

    def __init__(self):
        super().__init__(None)

    def load(self):
        return {"AWSLambdaBasicExecutionRole": "arn:aws:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole"}


with open(path, encoding="utf-8") as file:
    template = yaml_parse(file.read())
if kind == "cfn":
    print(json.dumps(template))
    sys.exit()
# The packages are not built, and their paths do not matter here.
for resource in template["Resources"].values():
    if resource["Type"] == "AWS::Serverless::Function":
        resource["Properties"]["CodeUri"] = "s3://packages/function.zip"
print(json.dumps(transform(template, {}, NoManagedPolicies())))
