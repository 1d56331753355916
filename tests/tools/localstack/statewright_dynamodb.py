"""DynamoDB for LocalStack, which has none of its own: every call goes to the server that `DYNAMODB_URL` names."""

import os

from localstack.aws.api.dynamodb import DynamodbApi
from localstack.aws.forwarder import HttpFallbackDispatcher
from localstack.services.plugins import Service, aws_provider


class Elsewhere(DynamodbApi):
    def forward_url(self, account_id=None, region_name=None):
        return os.environ["DYNAMODB_URL"]


@aws_provider(api="dynamodb", name="elsewhere")
def dynamodb_elsewhere():
    return Service.for_provider(
        Elsewhere(), dispatch_table_factory=lambda provider: HttpFallbackDispatcher(provider, provider.forward_url)
    )
