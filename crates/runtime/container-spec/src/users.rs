//! Who a container's process is: ids from configs and from `/etc/passwd` and `/etc/group` of the image.

use std::collections::BTreeSet;

use cri_api::v1;

use crate::SpecError;
use crate::facts::UserFiles;

/// Ids of a container's first process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerUser {
    /// User.
    pub uid: u32,
    /// Primary group.
    pub gid: u32,
    /// All groups that it is in, the primary one among them, in ascending order.
    pub additional_gids: Vec<u32>,
}

/// A line of `/etc/passwd`.
struct Account<'a> {
    name: &'a str,
    uid: u32,
    gid: u32,
}

fn accounts(passwd: &str) -> impl Iterator<Item = Account<'_>> {
    passwd.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        let uid = fields.nth(1)?.trim().parse().ok()?;
        let gid = fields.next()?.trim().parse().ok()?;
        Some(Account { name, uid, gid })
    })
}

/// Names, ids and members of `/etc/group`.
fn groups(group: &str) -> impl Iterator<Item = (&str, u32, &str)> {
    group.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        let gid = fields.nth(1)?.trim().parse().ok()?;
        Some((name, gid, fields.next().unwrap_or_default()))
    })
}

/// The user that a container runs as: of its config, else of its image (`user[:group]`), else root.
///
/// A number need not be in `/etc/passwd` (then its group is 0), a name must be. Groups of the policy Merge are those that the
/// image's `/etc/group` lists the user in, and the asked ones; of Strict the asked ones alone. The primary group is always among
/// them (CVE-2023-25173).
///
/// # Errors
/// Names that are not there, ids that are none, a group without a user.
pub fn container_user(
    context: Option<&v1::LinuxContainerSecurityContext>,
    image_user: &str,
    files: &UserFiles,
) -> Result<ContainerUser, SpecError> {
    let (user, group) = asked(context, image_user)?;
    let (uid, mut gid, name) = find_user(&user, files)?;
    if let Some(group) = group {
        gid = find_group(&group, files)?;
    }
    let mut gids = BTreeSet::from([gid]);
    let policy = context.map_or(0, |c| c.supplemental_groups_policy);
    match v1::SupplementalGroupsPolicy::try_from(policy) {
        Ok(v1::SupplementalGroupsPolicy::Merge) => {
            let member = |members: &str| name.as_deref().is_some_and(|n| members.split(',').any(|m| m.trim() == n));
            gids.extend(groups(&files.group).filter(|(_, _, members)| member(members)).map(|(_, gid, _)| gid));
        }
        Ok(v1::SupplementalGroupsPolicy::Strict) => {}
        Err(_) => return Err(SpecError::GroupsPolicy(policy)),
    }
    for &asked in context.map_or(&[][..], |c| &c.supplemental_groups) {
        gids.insert(id(asked)?);
    }
    Ok(ContainerUser { uid, gid, additional_gids: gids.into_iter().collect() })
}

/// User and group as they are asked for, names or numbers.
fn asked(
    context: Option<&v1::LinuxContainerSecurityContext>,
    image_user: &str,
) -> Result<(String, Option<String>), SpecError> {
    let group = context.and_then(|c| c.run_as_group.as_ref()).map(|g| g.value);
    let user = match context {
        Some(c) if !c.run_as_username.is_empty() => Some(c.run_as_username.clone()),
        Some(c) => c.run_as_user.as_ref().map(|u| u.value.to_string()),
        None => None,
    };
    match (user, group) {
        (Some(user), group) => Ok((user, group.map(|g| g.to_string()))),
        (None, Some(_)) => Err(SpecError::GroupWithoutUser),
        (None, None) => {
            let (user, group) = image_user.split_once(':').unwrap_or((image_user, ""));
            let user = if user.is_empty() { "0" } else { user };
            Ok((user.to_owned(), Some(group.to_owned()).filter(|g| !g.is_empty())))
        }
    }
}

/// Ids of a user and its name where that is known.
fn find_user(user: &str, files: &UserFiles) -> Result<(u32, u32, Option<String>), SpecError> {
    if let Some(account) = accounts(&files.passwd).find(|a| a.name == user) {
        return Ok((account.uid, account.gid, Some(account.name.to_owned())));
    }
    let Ok(number) = user.parse::<i64>() else { return Err(SpecError::UnknownUser(user.to_owned())) };
    let uid = id(number)?;
    match accounts(&files.passwd).find(|a| a.uid == uid) {
        Some(account) => Ok((uid, account.gid, Some(account.name.to_owned()))),
        None => Ok((uid, 0, None)),
    }
}

fn find_group(group: &str, files: &UserFiles) -> Result<u32, SpecError> {
    if let Some((_, gid, _)) = groups(&files.group).find(|(name, _, _)| *name == group) {
        return Ok(gid);
    }
    match group.parse::<i64>() {
        Ok(number) => id(number),
        Err(_) => Err(SpecError::UnknownGroup(group.to_owned())),
    }
}

/// 2^31 and more are refused, as runc does.
fn id(number: i64) -> Result<u32, SpecError> {
    match u32::try_from(number) {
        Ok(id) if id <= i32::MAX.unsigned_abs() => Ok(id),
        _ => Err(SpecError::BadId(number)),
    }
}
