//! The macro that declares structs with the default of each field.

/// Declares a struct with the default of each field.
macro_rules! with_defaults {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($(#[$doc:meta])* $vis:vis $field:ident: $type:ty = $default:expr),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        pub struct $name { $($(#[$doc])* $vis $field: $type),+ }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default),+ }
            }
        }
    };
}

pub(super) use with_defaults;
