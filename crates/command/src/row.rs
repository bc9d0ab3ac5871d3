//! A command's row: its metadata and its handler.

use crate::spec::Spec;

/// One command, or a container of subcommands; `H` is the kind of handler.
#[derive(Clone, Copy, Debug)]
pub struct Row<H: 'static> {
    /// Its metadata.
    pub spec: Spec,
    /// Its handler; `None` for a container.
    pub run: Option<H>,
    /// Its subcommands.
    pub subcommands: &'static [Row<H>],
}

impl<H: Copy> Row<H> {
    /// A command.
    pub const fn new(spec: Spec, run: H) -> Self {
        Self { spec, run: Some(run), subcommands: &[] }
    }

    /// A container of subcommands.
    pub const fn container(spec: Spec, subcommands: &'static [Row<H>]) -> Self {
        Self { spec: spec.container(), run: None, subcommands }
    }

    /// A command that also has subcommands, such as COMMAND.
    pub const fn with_subcommands(self, subcommands: &'static [Row<H>]) -> Self {
        Self { subcommands, ..self }
    }
}
