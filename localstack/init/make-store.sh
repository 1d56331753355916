#!/usr/bin/env bash
# Creates what `statewright aws setup` creates, when LocalStack starts. It may run again.
set -euo pipefail

awslocal dynamodb describe-table --table-name statewright >/dev/null 2>&1 || {
  awslocal dynamodb create-table --table-name statewright --billing-mode PAY_PER_REQUEST --deletion-protection-enabled \
    --attribute-definitions AttributeName=partition,AttributeType=S AttributeName=sort,AttributeType=S \
    --key-schema AttributeName=partition,KeyType=HASH AttributeName=sort,KeyType=RANGE >/dev/null
  awslocal dynamodb wait table-exists --table-name statewright
  awslocal dynamodb update-time-to-live --table-name statewright \
    --time-to-live-specification Enabled=true,AttributeName=ttl >/dev/null
  awslocal dynamodb update-continuous-backups --table-name statewright \
    --point-in-time-recovery-specification PointInTimeRecoveryEnabled=true >/dev/null
}
awslocal s3api head-bucket --bucket statewright >/dev/null 2>&1 || {
  awslocal s3 mb s3://statewright
  awslocal s3api put-public-access-block --bucket statewright --public-access-block-configuration \
    BlockPublicAcls=true,IgnorePublicAcls=true,BlockPublicPolicy=true,RestrictPublicBuckets=true
  awslocal s3api put-bucket-policy --bucket statewright --policy '{ "Version": "2012-10-17", "Statement": [{
    "Sid": "OnlyByTls", "Effect": "Deny", "Principal": "*", "Action": "s3:*",
    "Resource": ["arn:aws:s3:::statewright", "arn:aws:s3:::statewright/*"],
    "Condition": { "Bool": { "aws:SecureTransport": "false" } } }] }'
  infrequent() { # id, prefix, days
    echo "{ \"ID\": \"$1\", \"Status\": \"Enabled\", \"Filter\": { \"Prefix\": \"$2\" }," \
      "\"Transitions\": [{ \"Days\": $3, \"StorageClass\": \"STANDARD_IA\" }] }"
  }
  awslocal s3api put-bucket-lifecycle-configuration --bucket statewright --lifecycle-configuration "{ \"Rules\": [
    { \"ID\": \"unfinished-uploads\", \"Status\": \"Enabled\", \"Filter\": { \"Prefix\": \"\" },
      \"AbortIncompleteMultipartUpload\": { \"DaysAfterInitiation\": 1 } },
    { \"ID\": \"probes\", \"Status\": \"Enabled\", \"Filter\": { \"Prefix\": \"probe/\" }, \"Expiration\": { \"Days\": 1 } },
    $(infrequent logs-are-read-within-days log/ 30),
    $(infrequent events-are-read-within-days events/ 30),
    $(infrequent old-versions-are-seldom-read snap/ 90),
    $(infrequent old-terraform-states-are-seldom-read tf/ 90)] }" >/dev/null
}
awslocal kms describe-key --key-id alias/statewright >/dev/null 2>&1 || {
  key=$(awslocal kms create-key --query KeyMetadata.KeyId --output text)
  awslocal kms enable-key-rotation --key-id "$key"
  awslocal kms create-alias --alias-name alias/statewright --target-key-id "$key"
}
echo "the store of Statewright is there"
