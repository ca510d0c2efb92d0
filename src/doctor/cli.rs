//! `doctor`: what is wrong with a home and its surroundings, and what mends it.

use clap::Args;

use crate::backup::unfinished::Mended;
use crate::doctor::{self, Options, Repair, Report, Status};
use crate::kernel::cli::context::Context;
use crate::kernel::cli::output;
use crate::kernel::cli::output::{Table, Waiting};
use crate::kernel::cli::{Error, Run};
use crate::kernel::home::Home;

/// Options of `doctor`.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Skip checks that use the network
    #[arg(long)]
    offline: bool,
    /// Complete or roll back an interrupted restore; otherwise copy the readable data of a damaged store into a new one
    /// and keep the old one. An intact store is not changed
    #[arg(long)]
    repair: bool,
}

impl Run for Doctor {
    fn run(self, context: &Context) -> Result<(), Error> {
        let home = context.home()?;
        if self.repair {
            return repair(&home, context);
        }
        let report = {
            let _waiting = Waiting::on("checking");
            doctor::examine(home, Options { offline: self.offline })
        };
        context.print(&report, render)?;
        let failed = report.checks.iter().filter(|checked| checked.finding.status == Status::Fail).count();
        match failed {
            0 => Ok(()),
            1 => Err(Error::Failed("1 check failed".to_owned())),
            failed => Err(Error::Failed(format!("{failed} checks failed"))),
        }
    }
}

/// Repairs the home and says what came of it. Fails where a repair is not enough.
fn repair(home: &Home, context: &Context) -> Result<(), Error> {
    repair_store(home, context)?;
    doctor::left_to_mend(home).map_or(Ok(()), |fault| Err(Error::Failed(fault)))
}

fn repair_store(home: &Home, context: &Context) -> Result<(), Error> {
    let repaired = {
        let _waiting = Waiting::on("repairing");
        doctor::repair(home).map_err(Error::Failed)?
    };
    if context.json() {
        return output::json(&repaired);
    }
    output::print(&match repaired {
        Repair::Restore(mended) => render_restore(&mended),
        Repair::Store { world_rows, content_rows, old_store: None, .. } => format!(
            "the store is intact: {world_rows} world records and {content_rows} content rows; nothing was changed\n"
        ),
        Repair::Store { world_rows, content_rows, damage, lost, old_store: Some(old_store) } => {
            let mut text = format!("saved {world_rows} world records and {content_rows} content rows\n");
            let told = damage.iter().map(|what| ("damaged", what)).chain(lost.iter().map(|what| ("lost", what)));
            for (kind, what) in told {
                text.push_str(&format!("{kind}: {what}\n"));
            }
            if lost.is_empty() {
                text.push_str("nothing is lost\n");
            }
            text + &format!("the old store was kept at {}\n", old_store.display())
        }
    })
}

fn render_restore(mended: &Mended) -> String {
    match mended {
        Mended::Completed { archive } => format!("completed the interrupted restore of {archive}\n"),
        Mended::TakenBack { archive, reason } => {
            format!("rolled back the interrupted restore of {archive}: {reason}\n")
        }
        Mended::SetAside { reason, kept } => {
            let kept: String = kept.iter().map(|path| format!("kept: {}\n", path.display())).collect();
            format!(
                "the plan of a restore that was cut off cannot be read, and nothing was moved: {reason}\n{kept}\
                 restore the backup again\n"
            )
        }
    }
}

fn render(report: &Report) -> Table {
    let mut table = Table::pairs().states_in(0);
    for checked in &report.checks {
        let mut lines = checked.finding.message.lines();
        table.row([checked.finding.status.as_str(), checked.name, lines.next().unwrap_or_default()]);
        for line in lines {
            table.row(["", "", line]);
        }
        if let Some(fix) = &checked.finding.fix {
            table.row(["", "", &format!("-> {fix}")]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::{Checked, Finding};

    #[test]
    fn a_report_for_people() {
        let finding = |status, message: &str, fix: Option<&str>| Finding {
            status,
            message: message.to_owned(),
            fix: fix.map(str::to_owned),
        };
        let checks = vec![
            Checked { name: "config", finding: finding(Status::Fail, "a\nb", Some("mend it")) },
            Checked { name: "clock", finding: finding(Status::Pass, "noon", None) },
        ];
        let report = Report { status: Status::Fail, version: "1", home: "/h".to_owned(), running: false, checks };
        let text = render(&report).render();
        for line in ["fail  config  a\n", "b\n", "-> mend it\n", "pass  clock   noon\n"] {
            assert!(text.contains(line), "{line:?} in {text}");
        }
    }
}
