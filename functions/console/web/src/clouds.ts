// Where the clouds show a resource themselves: constant addresses, into which names are put with escapes.

import { SENSITIVE, isObject } from "./values";

/** What a resource tells about itself. */
export interface OfCloud {
  type: string;
  id?: string;
  outputs?: unknown;
}

/** A page of a cloud. */
export interface CloudPage {
  title: string;
  href: string;
}

type Names = Record<string, string>;

/** The address with a name for each `{place}`; `undefined` if one is not known. CloudWatch escapes names in its own way. */
function fill(template: string, names: Names): string | undefined {
  const places = [...template.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
  // Half a character cannot be escaped.
  if (places.some((name) => !names[name] || /\p{Cs}/u.test(names[name]))) return undefined;
  return template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const escaped = encodeURIComponent(names[name] ?? "");
    return name === "log" ? encodeURIComponent(escaped).replaceAll("%", "$") : escaped;
  });
}

/** The domains of the consoles of AWS, by the partition in an ARN. */
const AWS_DOMAINS: Names = {
  aws: "console.aws.amazon.com",
  "aws-us-gov": "console.amazonaws-us-gov.com",
  "aws-cn": "console.amazonaws.cn",
};

const AWS: Names = {
  "cloudformation:Stack": "/cloudformation/home?region={region}#/stacks/stackinfo?stackId={arn}",
  "cloudwatch:LogGroup": "/cloudwatch/home?region={region}#logsV2:log-groups/log-group/{log}",
  "dynamodb:Table": "/dynamodbv2/home?region={region}#table?name={name}",
  "ebs:Volume": "/ec2/home?region={region}#VolumeDetails:volumeId={id}",
  "ec2:Instance": "/ec2/home?region={region}#InstanceDetails:instanceId={id}",
  "ec2:RouteTable": "/vpcconsole/home?region={region}#RouteTableDetails:RouteTableId={id}",
  "ec2:SecurityGroup": "/ec2/home?region={region}#SecurityGroup:groupId={id}",
  "ec2:Subnet": "/vpcconsole/home?region={region}#SubnetDetails:subnetId={id}",
  "ec2:Vpc": "/vpcconsole/home?region={region}#VpcDetails:VpcId={id}",
  "ecr:Repository": "/ecr/repositories/private/{account}/{name}?region={region}",
  "ecs:Cluster": "/ecs/v2/clusters/{name}?region={region}",
  "eks:Cluster": "/eks/home?region={region}#/clusters/{name}",
  "kms:Key": "/kms/home?region={region}#/kms/keys/{id}",
  "lambda:Function": "/lambda/home?region={region}#/functions/{name}",
  "lb:LoadBalancer": "/ec2/home?region={region}#LoadBalancer:loadBalancerArn={arn}",
  "s3:Bucket": "/s3/buckets/{id}?region={region}",
  "secretsmanager:Secret": "/secretsmanager/secret?name={name}&region={region}",
  "sfn:StateMachine": "/states/home?region={region}#/v2/statemachines/view/{arn}",
  "sns:Topic": "/sns/v3/home?region={region}#/topic/{arn}",
  "sqs:Queue": "/sqs/v3/home?region={region}#/queues/{id}",
};

/** Those that belong to no region. */
const AWS_GLOBAL: Names = {
  "cloudfront:Distribution": "/cloudfront/v4/home#/distributions/{id}",
  "iam:Policy": "/iam/home#/policies/details/{arn}",
  "iam:Role": "/iam/home#/roles/details/{name}",
  "iam:User": "/iam/home#/users/details/{name}",
  "route53:Zone": "/route53/v2/hostedzones#ListRecordSets/{id}",
};

const GOOGLE: Names = {
  "cloudrun:Service": "/run/detail/{place}/{name}/metrics?project={project}",
  "cloudrunv2:Service": "/run/detail/{place}/{name}/metrics?project={project}",
  "compute:Instance": "/compute/instancesDetail/zones/{place}/instances/{name}?project={project}",
  "compute:Network": "/networking/networks/details/{name}?project={project}",
  "container:Cluster": "/kubernetes/clusters/details/{place}/{name}/details?project={project}",
  "pubsub:Subscription": "/cloudpubsub/subscription/detail/{name}?project={project}",
  "pubsub:Topic": "/cloudpubsub/topic/detail/{name}?project={project}",
  "sql:DatabaseInstance": "/sql/instances/{name}/overview?project={project}",
  "storage:Bucket": "/storage/browser/{name}?project={project}",
};

/** What resources of Terraform are in the tables above. Those of Azure need none. */
const TERRAFORM_AWS: Names = {
  aws_alb: "lb:LoadBalancer",
  aws_cloudformation_stack: "cloudformation:Stack",
  aws_cloudfront_distribution: "cloudfront:Distribution",
  aws_cloudwatch_log_group: "cloudwatch:LogGroup",
  aws_dynamodb_table: "dynamodb:Table",
  aws_ebs_volume: "ebs:Volume",
  aws_ecr_repository: "ecr:Repository",
  aws_ecs_cluster: "ecs:Cluster",
  aws_eks_cluster: "eks:Cluster",
  aws_iam_policy: "iam:Policy",
  aws_iam_role: "iam:Role",
  aws_iam_user: "iam:User",
  aws_instance: "ec2:Instance",
  aws_kms_key: "kms:Key",
  aws_lambda_function: "lambda:Function",
  aws_lb: "lb:LoadBalancer",
  aws_route53_zone: "route53:Zone",
  aws_route_table: "ec2:RouteTable",
  aws_s3_bucket: "s3:Bucket",
  aws_secretsmanager_secret: "secretsmanager:Secret",
  aws_security_group: "ec2:SecurityGroup",
  aws_sfn_state_machine: "sfn:StateMachine",
  aws_sns_topic: "sns:Topic",
  aws_sqs_queue: "sqs:Queue",
  aws_subnet: "ec2:Subnet",
  aws_vpc: "ec2:Vpc",
};

const TERRAFORM_GOOGLE: Names = {
  google_cloud_run_service: "cloudrun:Service",
  google_cloud_run_v2_service: "cloudrunv2:Service",
  google_compute_instance: "compute:Instance",
  google_compute_network: "compute:Network",
  google_container_cluster: "container:Cluster",
  google_pubsub_subscription: "pubsub:Subscription",
  google_pubsub_topic: "pubsub:Topic",
  google_sql_database_instance: "sql:DatabaseInstance",
  google_storage_bucket: "storage:Bucket",
};

/** The first of these members that is a text. A secret is none. */
function textIn(of: unknown, ...names: string[]): string {
  if (!isObject(of)) return "";
  const isText = (value: unknown) => typeof value === "string" && value !== "" && value !== SENSITIVE;
  const found = names.map((name) => of[name]).find(isText);
  return typeof found === "string" ? found : "";
}

const REGION = /^[a-z]{2}(-[a-z]+)+-\d+$/;

function awsPage(kind: string, id: string, outputs: unknown): string | undefined {
  const arn = [textIn(outputs, "arn"), id].find((text) => text.startsWith("arn:")) ?? "";
  const [, partition = "aws", , ofArn = "", account = ""] = arn.split(":");
  // A resource without a region says at least in which zone it is.
  const zone = textIn(outputs, "availabilityZone", "availability_zone").replace(/[a-z]$/, "");
  const region = [ofArn, textIn(outputs, "region"), zone].find((text) => REGION.test(text)) ?? "";
  const domain = Object.hasOwn(AWS_DOMAINS, partition) ? AWS_DOMAINS[partition] : undefined;
  // Newer types are of the same things: `BucketV2`.
  const plain = kind.replace(/V\d+$/, "");
  const template = AWS[plain] ?? AWS_GLOBAL[plain];
  const name = textIn(outputs, "name") || id;
  const path = template && fill(template, { id, arn, account, region, name, log: name });
  if (!path || !domain) return undefined;
  return plain in AWS ? `https://${region}.${domain}${path}` : `https://${domain}${path}`;
}

function googlePage(kind: string, id: string, outputs: unknown): string | undefined {
  const name = textIn(outputs, "name") || (id.split("/").at(-1) ?? "");
  const project = textIn(outputs, "project") || (/^projects\/([^/]+)\//.exec(id)?.[1] ?? "");
  const template = GOOGLE[kind];
  const path = template && fill(template, { name, project, place: textIn(outputs, "zone", "location", "region") });
  return path && `https://console.cloud.google.com${path}`;
}

/** An ID of Azure is the path of its page. */
const azurePage = (id: string) =>
  /^\/subscriptions\/[^/]+\/resource/i.test(id)
    ? `https://portal.azure.com/#resource${id.split("/").map(encodeURIComponent).join("/")}`
    : undefined;

/** The page of the cloud for a resource, if its type and its ID tell one. */
export function cloudPage({ type, id, outputs }: OfCloud): CloudPage | undefined {
  if (!id) return undefined;
  const [provider, module = "", name] = type.split(":");
  const kind = `${module.split("/")[0]}:${name}`;
  const page = (title: string, href: string | undefined) => (href ? { title, href } : undefined);
  switch (provider) {
    case "aws":
      return page("AWS", awsPage(kind, id, outputs));
    case "gcp":
      return page("Google Cloud", googlePage(kind, id, outputs));
    case "azure":
    case "azure-native":
      return page("Azure", azurePage(id));
    default:
      return undefined;
  }
}

/** The page of the cloud for a resource of Terraform, if its type and its attributes tell one. */
export function terraformPage(type: string, attributes: unknown): CloudPage | undefined {
  const id = textIn(attributes, "id");
  if (id === "") return undefined;
  const page = (title: string, href: string | undefined) => (href ? { title, href } : undefined);
  const aws = Object.hasOwn(TERRAFORM_AWS, type) ? TERRAFORM_AWS[type] : undefined;
  if (aws) return page("AWS", awsPage(aws, id, attributes));
  const google = Object.hasOwn(TERRAFORM_GOOGLE, type) ? TERRAFORM_GOOGLE[type] : undefined;
  if (google) return page("Google Cloud", googlePage(google, id, attributes));
  return type.startsWith("azurerm_") ? page("Azure", azurePage(id)) : undefined;
}
