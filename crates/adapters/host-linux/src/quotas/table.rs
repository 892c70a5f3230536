//! The texts of `/etc/projects` (`ID:DIRECTORY`) and `/etc/projid` (`NAME:ID`). Lines of others stay as they are. Pure.

use std::collections::BTreeSet;
use std::path::Path;

/// The first id that a kubelet takes.
pub(super) const FIRST: u32 = 1_048_577;

/// Both files, by their lines.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Table {
    projects: Vec<String>,
    projid: Vec<String>,
}

impl Table {
    pub(super) fn parse(projects: &str, projid: &str) -> Self {
        let lines = |text: &str| text.lines().map(str::to_owned).collect();
        Table { projects: lines(projects), projid: lines(projid) }
    }

    pub(super) fn projects_text(&self) -> String {
        text(&self.projects)
    }

    pub(super) fn projid_text(&self) -> String {
        text(&self.projid)
    }

    /// The project of a directory.
    pub(super) fn project_of(&self, dir: &Path) -> Option<u32> {
        self.projects.iter().filter_map(|l| project(l)).find(|(_, of)| Path::new(of) == dir).map(|(id, _)| id)
    }

    /// Ids that no line names, ascending.
    pub(super) fn free_ids(&self) -> impl Iterator<Item = u32> {
        let named = self.projid.iter().filter_map(|l| projid(l));
        let taken: BTreeSet<u32> =
            self.projects.iter().filter_map(|l| project(l)).map(|(id, _)| id).chain(named).collect();
        (FIRST..=u32::MAX).filter(move |id| !taken.contains(id))
    }

    /// Gives a directory without a project one, with a name.
    pub(super) fn add(&mut self, dir: &Path, id: u32) {
        self.projid.push(format!("volume{id}:{id}"));
        self.projects.push(format!("{id}:{}", dir.display()));
    }

    /// Takes the directory out, and the name of its project with the last directory of it. Answers which it was.
    pub(super) fn remove(&mut self, dir: &Path) -> Option<u32> {
        let id = self.project_of(dir)?;
        self.projects.retain(|l| project(l).is_none_or(|(_, of)| Path::new(of) != dir));
        if !self.projects.iter().any(|l| project(l).is_some_and(|(other, _)| other == id)) {
            self.projid.retain(|l| projid(l) != Some(id));
        }
        Some(id)
    }
}

fn text(lines: &[String]) -> String {
    lines.iter().map(|l| format!("{l}\n")).collect()
}

fn project(line: &str) -> Option<(u32, &str)> {
    let (id, dir) = line.split_once(':')?;
    Some((id.parse().ok()?, dir))
}

fn projid(line: &str) -> Option<u32> {
    let (name, id) = line.split_once(':')?;
    (!name.is_empty() && !name.starts_with('#')).then(|| id.parse().ok()).flatten()
}
