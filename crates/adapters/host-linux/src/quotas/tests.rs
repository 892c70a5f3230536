use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use ports::host::ProjectQuotas;

use super::LinuxQuotas;
use super::table::{FIRST, Table};

const PROJECTS: &str = "7:/srv/theirs\nno line of ours\n1048577:/pods/a\n1048577:/pods/b\n";
const PROJID: &str = "# names\ntheirs:7\nvolume1048577:1048577\nnamed:1048578\n";

#[test]
fn a_directory_has_the_project_of_its_line() {
    let table = Table::parse(PROJECTS, PROJID);
    for (dir, id) in [("/srv/theirs", Some(7)), ("/pods/b", Some(FIRST)), ("/pods", None), ("/pods/b/c", None)] {
        assert_eq!(table.project_of(Path::new(dir)), id, "{dir}");
    }
}

#[test]
fn free_is_what_neither_file_names_from_a_kubelets_first_on() {
    assert_eq!(Table::parse(PROJECTS, PROJID).free_ids().next(), Some(FIRST + 2));
    assert_eq!(Table::default().free_ids().next(), Some(FIRST));
    assert_eq!(
        Table::parse(&format!("{}:/x", FIRST + 1), "").free_ids().take(2).collect::<Vec<_>>(),
        [FIRST, FIRST + 2]
    );
}

#[test]
fn lines_come_and_go_as_a_kubelets_and_those_of_others_stay() {
    let mut table = Table::parse("7:/srv/theirs\n", "# names\ntheirs:7\n");
    table.add(Path::new("/pods/a"), FIRST);
    assert_eq!(table.projects_text(), "7:/srv/theirs\n1048577:/pods/a\n");
    assert_eq!(table.projid_text(), "# names\ntheirs:7\nvolume1048577:1048577\n");
    assert_eq!(table.remove(Path::new("/pods/a")), Some(FIRST));
    assert_eq!(table.remove(Path::new("/pods/a")), None);
    assert_eq!(
        (table.projects_text().as_str(), table.projid_text().as_str()),
        ("7:/srv/theirs\n", "# names\ntheirs:7\n")
    );
}

#[test]
fn a_name_goes_with_the_last_directory_of_its_project() {
    let mut table = Table::parse(PROJECTS, PROJID);
    assert_eq!(table.remove(Path::new("/pods/a")), Some(FIRST));
    assert_eq!(table.projid_text(), PROJID);
    assert_eq!(table.remove(Path::new("/pods/b")), Some(FIRST));
    assert_eq!(table.projid_text(), "# names\ntheirs:7\nnamed:1048578\n");
    assert_eq!(table.projects_text(), "7:/srv/theirs\nno line of ours\n");
}

#[test]
fn where_nothing_is_counted_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let (etc, volume) = (dir.path().join("etc"), dir.path().join("volume"));
    std::fs::create_dir(&etc).unwrap();
    std::fs::create_dir(&volume).unwrap();
    let quotas = LinuxQuotas::new(&etc);
    // A file system that counts projects would be one of this machine's owner's choice: the guest has some.
    if !super::kernel::counts(&super::open_dir(&volume).unwrap()) {
        assert!(!quotas.assign(&volume).unwrap());
        assert_eq!(std::fs::read_dir(&etc).unwrap().count(), 0);
    }
    assert_eq!(quotas.usage(&volume), None);
    quotas.release(&volume).unwrap();
    assert!(quotas.assign(&dir.path().join("nowhere")).unwrap_err().is_not_found());
}

#[test]
fn a_line_is_taken_back_whatever_became_of_its_directory_and_files_keep_their_mode() {
    let etc = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(etc.path().join(name), text).unwrap();
    write("projects", "1048577:/nowhere/at/all\n7:/srv\n");
    write("projid", "volume1048577:1048577\n");
    std::fs::set_permissions(etc.path().join("projects"), std::fs::Permissions::from_mode(0o600)).unwrap();
    LinuxQuotas::new(etc.path()).release(Path::new("/nowhere/at/all")).unwrap();
    assert_eq!(std::fs::read_to_string(etc.path().join("projects")).unwrap(), "7:/srv\n");
    assert_eq!(std::fs::read_to_string(etc.path().join("projid")).unwrap(), "");
    assert_eq!(std::fs::metadata(etc.path().join("projects")).unwrap().permissions().mode() & 0o7777, 0o600);
    assert_eq!(std::fs::read_dir(etc.path()).unwrap().count(), 2, "nothing else is left there");
}

#[test]
fn files_that_are_links_are_left_alone() {
    let etc = tempfile::tempdir().unwrap();
    std::fs::write(etc.path().join("elsewhere"), "1048577:/pods/a\n").unwrap();
    symlink("elsewhere", etc.path().join("projects")).unwrap();
    assert!(LinuxQuotas::new(etc.path()).release(Path::new("/pods/a")).is_err());
    assert_eq!(std::fs::read_to_string(etc.path().join("elsewhere")).unwrap(), "1048577:/pods/a\n");
}
