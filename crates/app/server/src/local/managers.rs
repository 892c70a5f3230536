//! The answers to who serves the roles that may be served elsewhere, and orders to change it.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;

use super::near::near;
use super::places::{Done, ManagerLine, Managers, NotDone, SwapOrder};
use super::routes::{Refusal, Shared, refuse};

impl From<NotDone> for Refusal {
    fn from(not_done: NotDone) -> Self {
        match not_done {
            NotDone::Refused(why) => refuse(StatusCode::BAD_REQUEST, why),
            NotDone::Failed(why) => refuse(StatusCode::CONFLICT, why),
        }
    }
}

fn managers(views: &super::Views) -> Result<Arc<dyn Managers>, Refusal> {
    let none = || refuse(StatusCode::NOT_FOUND, "this program changes no places of managers");
    views.managers.clone().ok_or_else(none)
}

/// The manager of that name, which is there.
fn named(managers: &dyn Managers, name: &str) -> Result<ManagerLine, Refusal> {
    let all = managers.lines();
    if let Some(line) = all.iter().find(|line| line.name == name) {
        return Ok(line.clone());
    }
    let names: Vec<&str> = all.iter().map(|line| line.name.as_str()).collect();
    let meant = near(name, names.iter().copied());
    let meant = if meant.is_empty() { String::new() } else { format!("; did you mean {}?", meant.join(" or ")) };
    let text = format!("no manager {name:?} may be served elsewhere{meant} (allowed: {})", names.join(", "));
    Err(refuse(StatusCode::NOT_FOUND, text))
}

pub(super) async fn all(State(views): Shared) -> Result<Json<Vec<ManagerLine>>, Refusal> {
    Ok(Json(managers(&views)?.lines()))
}

pub(super) async fn one(State(views): Shared, Path(name): Path<String>) -> Result<Json<ManagerLine>, Refusal> {
    Ok(Json(named(&*managers(&views)?, &name)?))
}

pub(super) async fn swap(State(views): Shared, Path(name): Path<String>, body: String) -> Result<Json<Done>, Refusal> {
    let order: SwapOrder = serde_json::from_str(&body).map_err(|e| refuse(StatusCode::BAD_REQUEST, e.to_string()))?;
    let managers = managers(&views)?;
    named(&*managers, &name)?;
    Ok(Json(managers.swap(&name, order).await?))
}

pub(super) async fn roll_back(State(views): Shared, Path(name): Path<String>) -> Result<Json<Done>, Refusal> {
    let managers = managers(&views)?;
    named(&*managers, &name)?;
    Ok(Json(managers.roll_back(&name).await?))
}
