// Rust's serde_json: `serde struct` reads a message into structs, `serde value` into a Value.
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::BufRead;

#[derive(Deserialize, Serialize)]
struct Options {
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<f64>,
}

#[derive(Deserialize, Serialize)]
struct Arguments {
    #[serde(skip_serializing_if = "Option::is_none")]
    cmd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    force: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    options: Option<Options>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    paths: Option<Vec<Value>>,
}

#[derive(Deserialize, Serialize)]
struct Reference {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<String>,
}

#[derive(Deserialize, Serialize)]
struct Params {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Arguments>,
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    reference: Option<Reference>,
}

#[derive(Deserialize, Serialize)]
struct Message {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<Params>,
}

fn hex(text: &str) -> String {
    let digits: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("\"{digits}\"")
}

fn described(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(truth) => truth.to_string(),
        Value::String(text) => hex(text),
        Value::Number(number) => format!("[\"n\",\"{number}\"]"),
        Value::Array(inner) => {
            let parts: String = inner.iter().map(|v| format!(",{}", described(v))).collect();
            format!("[\"a\"{parts}]")
        }
        Value::Object(members) => {
            let pairs = members.iter().map(|(k, v)| format!(",[{},{}]", hex(k), described(v)));
            format!("[\"o\"{}]", pairs.collect::<String>())
        }
    }
}

fn read(way: &str, line: &[u8]) -> serde_json::Result<Value> {
    match way {
        "value" => serde_json::from_slice(line),
        _ => serde_json::to_value(serde_json::from_slice::<Message>(line)?),
    }
}

fn main() {
    let way = std::env::args().nth(1).expect("struct or value");
    for text in std::io::stdin().lock().lines() {
        let text = text.expect("a line");
        let digits: Vec<u8> = text.trim().bytes().collect();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        let line: Vec<u8> = digits.chunks(2).map(byte).collect();
        match read(&way, &line) {
            Ok(value) if value.is_object() => println!("{}", described(&value)),
            _ => println!("refused"),
        }
    }
}
