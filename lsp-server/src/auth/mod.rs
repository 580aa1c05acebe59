//! Who we are, for servers that ask.
//!
//! A secret belongs to an [`Origin`]: scheme, host and port. It is looked up by the origin of
//! the very request it goes with, so no address in any setting can get another origin's, and
//! it goes over TLS or stays on the machine. Where it comes from, first found:
//!
//! 1. `PERFLENS_TOKEN`, for the origin of `PERFLENS_TOKEN_FOR` (or of Polar Signals Cloud);
//! 2. the [`store`], written by `perflens login`;
//! 3. the login of psctl, for Polar Signals Cloud and while it is valid; never refreshed by us.
//!
//! | module | |
//! |---|---|
//! | [`store`] | secrets on this machine, and the lock around changing them |
//! | [`keeper`] | what goes with a request; refreshing |
//! | [`oauth`] | the calls of OAuth |
//! | [`signin`] | the ways to sign in |
//! | [`callback`] | the page the browser comes back to |

pub mod callback;
pub mod keeper;
pub mod oauth;
pub mod signin;
pub mod store;

pub use keeper::Keeper;
pub use store::{Grant, Store};

use crate::source::Origin;
use url::Url;

/// The origin of Polar Signals Cloud's API.
pub fn cloud() -> Option<Origin> {
    Url::parse("https://api.polarsignals.com").ok().map(|url| Origin::of(&url))
}
