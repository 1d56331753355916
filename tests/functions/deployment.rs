//! The SAM template, deployed by the CloudFormation of the stand-in for AWS.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use statewright_shared::adapters::aws::Names;
use statewright_tests::aws::StandIn;
use statewright_tests::functions::Setting;
use statewright_tests::tools;

use crate::templates::file;

/// The packages' address in the translated template.
const PACKAGES: &str = "packages";

/// An empty zip file: the deployed code is not run there.
const PACKAGE: [u8; 22] = *b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

/// A stack of the template, or of a part of the Pulumi program.
pub(crate) struct Deployment {
    name: String,
    /// Its resources on AWS, by logical name.
    pub(crate) resources: BTreeMap<String, String>,
    pub(crate) outputs: BTreeMap<String, String>,
}

impl Deployment {
    /// A new stack with these parameters, or the reason of its refusal.
    pub(crate) async fn create(name: &str, parameters: &[(&str, &str)]) -> Result<Self, String> {
        apply("CreateStack", name, &template(), parameters).await
    }

    /// A new stack of another template.
    pub(crate) async fn of(
        template: &Value,
        name: &str,
        parameters: &[(&str, &str)],
    ) -> Result<Self, String> {
        apply("CreateStack", name, template, parameters).await
    }

    /// The same stack with these parameters, and the defaults for all others.
    pub(crate) async fn update(self, parameters: &[(&str, &str)]) -> Self {
        apply("UpdateStack", &self.name, &template(), parameters).await.unwrap()
    }

    /// The environment of each function, of the version that the API or the schedule calls.
    pub(crate) async fn environments(&self) -> BTreeMap<String, BTreeMap<String, String>> {
        let mut all = BTreeMap::new();
        for name in tools::function_names() {
            let variables = self.function(name).await["Environment"]["Variables"].clone();
            all.insert(name.to_owned(), serde_json::from_value(variables).unwrap());
        }
        all
    }

    /// A function as it is called.
    pub(crate) async fn function(&self, name: &str) -> Value {
        let uri = self.outputs.get(&format!("Uri{name}"));
        let called = match uri {
            Some(uri) => uri.split("functions/").nth(1).unwrap().split("/invocations").next().unwrap(),
            None => self.resources[logical(name).as_str()].as_str(),
        };
        let text = get("lambda", &format!("/2015-03-31/functions/{called}/configuration")).await;
        serde_json::from_str(&text).unwrap()
    }

    /// The policies of a function about its callers.
    pub(crate) async fn policies(&self, name: &str) -> Vec<String> {
        let mut all = Vec::new();
        for qualifier in ["", "?Qualifier=live"] {
            let path = format!("/2015-03-31/functions/{}/policy{qualifier}", self.resources[&logical(name)]);
            if let Ok(answer) = serde_json::from_str::<Value>(&get("lambda", &path).await)
                && let Some(policy) = answer["Policy"].as_str()
            {
                all.push(policy.to_owned());
            }
        }
        all
    }

    /// The store of its functions.
    pub(crate) async fn names(&self) -> Names {
        let environments = self.environments().await;
        let read = &environments["read"];
        Names {
            table: read["STATEWRIGHT_TABLE"].clone(),
            bucket: read["STATEWRIGHT_BUCKET"].clone(),
            key: read["STATEWRIGHT_KMS_KEY"].clone(),
        }
    }

    /// The settings to run its functions behind our own gateway.
    pub(crate) async fn setting(&self) -> Setting {
        Setting { names: Some(self.names().await), deployed: self.environments().await, ..Setting::default() }
    }
}

/// `read` as `Read`.
fn logical(name: &str) -> String {
    let (first, rest) = name.split_at(1);
    format!("{}{rest}", first.to_uppercase())
}

/// The template, with the targets of the API among its outputs.
fn template() -> Value {
    let mut template = tools::template("sam", &file("sam/template.yaml"));
    // The only kind of resource that the stand-in lacks.
    let is_known = |resource: &Value| resource["Type"] != "AWS::Logs::QueryDefinition";
    template["Resources"].as_object_mut().unwrap().retain(|_, resource| is_known(resource));
    let components = &template["Resources"]["Api"]["Properties"]["Body"]["components"];
    let integrations = components["x-amazon-apigateway-integrations"].as_object().unwrap().clone();
    for (name, integration) in integrations {
        template["Outputs"][format!("Uri{name}")] = json!({ "Value": integration["uri"] });
    }
    template
}

async fn apply(
    action: &str,
    name: &str,
    template: &Value,
    parameters: &[(&str, &str)],
) -> Result<Deployment, String> {
    refused_or_text(put(PACKAGES, Vec::new()).await)?;
    refused_or_text(put(&format!("{PACKAGES}/function.zip"), PACKAGE.to_vec()).await)?;
    let path = format!("{PACKAGES}/{name}.json");
    refused_or_text(put(&path, template.to_string().into_bytes()).await)?;
    let url = format!("{}/{path}", StandIn::of_this_process().url);
    let mut form = vec![
        ("StackName".to_owned(), name.to_owned()),
        ("TemplateURL".to_owned(), url),
        ("Capabilities.member.1".to_owned(), "CAPABILITY_IAM".to_owned()),
    ];
    for (number, (parameter, value)) in (1..).zip(parameters) {
        form.push((format!("Parameters.member.{number}.ParameterKey"), (*parameter).to_owned()));
        form.push((format!("Parameters.member.{number}.ParameterValue"), (*value).to_owned()));
    }
    cloudformation(action, &form).await?;
    let of_stack = [("StackName".to_owned(), name.to_owned())];
    let described = loop {
        let described = cloudformation("DescribeStacks", &of_stack).await?;
        let status = parts(&described, "StackStatus").remove(0);
        if status == "CREATE_COMPLETE" || status == "UPDATE_COMPLETE" {
            break described;
        }
        if !status.ends_with("IN_PROGRESS") {
            return Err(cloudformation("DescribeStackEvents", &of_stack).await?);
        }
        tokio::task::yield_now().await;
    };
    let outputs = parts(&described, "OutputKey").into_iter().zip(parts(&described, "OutputValue")).collect();
    let resources = cloudformation("DescribeStackResources", &of_stack).await?;
    let physical = parts(&resources, "PhysicalResourceId");
    let resources = parts(&resources, "LogicalResourceId").into_iter().zip(physical).collect();
    Ok(Deployment { name: name.to_owned(), resources, outputs })
}

/// A call of CloudFormation, or the message of its refusal.
async fn cloudformation(action: &str, form: &[(String, String)]) -> Result<String, String> {
    let call = [("Action", action), ("Version", "2010-05-15")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let form = [&call, form].concat();
    let request = reqwest::Client::new().post(&StandIn::of_this_process().url).form(&form);
    let answer = request.header("authorization", authorization("cloudformation")).send().await.unwrap();
    refused_or_text((answer.status().as_u16(), answer.text().await.unwrap()))
}

/// The alarms of the account, by name.
pub(crate) async fn alarms() -> BTreeMap<String, Value> {
    let call = "GraniteServiceVersion20100801.DescribeAlarms";
    let described = StandIn::of_this_process().call(call, &json!({})).await;
    let alarms = described["MetricAlarms"].as_array().unwrap().iter();
    alarms.map(|alarm| (alarm["AlarmName"].as_str().unwrap().to_owned(), alarm.clone())).collect()
}

fn refused_or_text((status, text): (u16, String)) -> Result<String, String> {
    match status {
        200 => Ok(text),
        _ => Err(parts(&text, "Message").pop().unwrap_or(text)),
    }
}

async fn put(path: &str, body: Vec<u8>) -> (u16, String) {
    let request = reqwest::Client::new().put(format!("{}/{path}", StandIn::of_this_process().url)).body(body);
    let answer = request.header("authorization", authorization("s3")).send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

async fn get(service: &str, path: &str) -> String {
    let request = reqwest::Client::new().get(format!("{}{path}", StandIn::of_this_process().url));
    let answer = request.header("authorization", authorization(service)).send().await.unwrap();
    answer.text().await.unwrap()
}

fn authorization(service: &str) -> String {
    let scope = format!("stand-in/20260101/us-east-1/{service}/aws4_request");
    format!("AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0")
}

/// The texts between all pairs of tags of this name.
fn parts(xml: &str, tag: &str) -> Vec<String> {
    let between = |rest: &str| Some(rest.split_once("</")?.0.to_owned());
    let begin = format!("<{tag}>");
    let all = xml.split(&begin).skip(1).filter_map(between);
    all.map(|text| text.replace("&amp;", "&").replace("&quot;", "\"")).collect()
}
