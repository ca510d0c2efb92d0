//! The usage export in a program that other people wrote: Python's csv reader, and a workbook of openpyxl, in which a cell that
//! began like a formula would be one.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::support::clients::{python, skipped};
use crate::support::daemon::Daemon;
use crate::support::model::Model;

/// Reads the CSV, writes a workbook of it, opens that again, and tells what stands in it.
const SCRIPT: &str = r#"
import csv, json, sys
from openpyxl import Workbook, load_workbook
source, book = sys.argv[1], sys.argv[2]
with open(source, newline="", encoding="utf-8") as file:
    rows = list(csv.reader(file, strict=True))
workbook = Workbook()
for row in rows:
    workbook.active.append(row)
workbook.save(book)
sheet = load_workbook(book).active
formulas = [cell.coordinate for line in sheet.iter_rows() for cell in line if cell.data_type == "f"]
names = [sheet.cell(row=at, column=3).value for at in range(2, sheet.max_row + 1)]
print(json.dumps({"widths": sorted({len(row) for row in rows}), "names": names, "formulas": formulas}))
"#;

#[test]
fn a_spreadsheet_reads_the_export_with_hostile_names_intact() {
    if skipped() {
        return;
    }
    let python = python("openpyxl");
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let names = ["=HYPERLINK(1)", "+1", "-2", "@SUM(A1)", "a,b", "say \\\"hi\\\"", "ünï 漢字", "plain"];
    for name in names {
        let agent = daemon.agent_with(name, "");
        daemon.say(&agent, "hello");
    }
    let (source, book) = (daemon.home().join("usage.csv"), daemon.home().join("usage.xlsx"));
    fs::write(&source, daemon.get("/api/usage/export").text()).expect("the file can be written");
    let told = Command::new(python).args(["-c", SCRIPT]).arg(&source).arg(&book).output().expect("Python runs");
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    let told: Value = serde_json::from_slice(&told.stdout).expect("JSON");
    assert_eq!(told["widths"], serde_json::json!([14]));
    assert_eq!(told["formulas"], serde_json::json!([]));
    let guarded = ["'=HYPERLINK(1)", "'+1", "'-2", "'@SUM(A1)", "a,b", "say \"hi\"", "ünï 漢字", "plain"];
    assert_eq!(told["names"], serde_json::json!(guarded));
}
