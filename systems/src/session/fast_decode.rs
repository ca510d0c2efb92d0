//! Agents and sessions read straight from their bytes: a start reads a million of each.
//!
//! Here a record is read that has exactly the fields that nearly all have, in the order in which [`encode`](crate::kernel::record::encode)
//! writes them. Whatever else it is, there is no answer, and the reader that knows all forms reads it.

use agentsvc_components::agent::record::AgentRecord;
use agentsvc_components::agent::{AgentMode, AgentState};
use agentsvc_components::kernel::taint::{AgentTaint, Taint};
use agentsvc_components::manifest::ManifestHash;
use agentsvc_components::session::record::SessionRecord;
use agentsvc_components::{AgentId, LogId, SessionId, Timestamp};
use uuid::Uuid;

use crate::kernel::record::VERSION;

/// An agent without untrusted content.
pub(crate) fn agent(value: &[u8]) -> Option<AgentRecord> {
    let mut fields = Fields::of(value)?;
    let has_parent = match fields.count {
        10 => false,
        11 => true,
        _ => return None,
    };
    let record = AgentRecord {
        id: AgentId(fields.named(b"\xa2id")?.uuid()?),
        name: fields.named(b"\xa4name")?.text()?.into(),
        manifest: ManifestHash(fields.named(b"\xa8manifest")?.bytes()?),
        current: SessionId(fields.named(b"\xa7current")?.uuid()?),
        created_at: fields.named(b"\xaacreated_at")?.moment()?,
        updated_at: fields.named(b"\xaaupdated_at")?.moment()?,
        input_tokens: fields.named(b"\xacinput_tokens")?.number()?,
        output_tokens: fields.named(b"\xadoutput_tokens")?.number()?,
        state: match fields.named(b"\xa5state")?.text()? {
            "Running" => AgentState::Running,
            "Stopped" => AgentState::Stopped,
            _ => return None,
        },
        mode: match fields.named(b"\xa4mode")?.text()? {
            "Normal" => AgentMode::Normal,
            "Stable" => AgentMode::Stable,
            _ => return None,
        },
        parent: if has_parent { Some(AgentId(fields.named(b"\xa6parent")?.uuid()?)) } else { None },
        taint: AgentTaint::default(),
        imported_from: None,
        owner: None,
    };
    fields.rest.is_empty().then_some(record)
}

/// A session without untrusted content.
pub(crate) fn session(value: &[u8]) -> Option<SessionRecord> {
    let mut fields = Fields::of(value)?;
    let has_rows = match fields.count {
        11 => false,
        12 => true,
        _ => return None,
    };
    let record = SessionRecord {
        id: SessionId(fields.named(b"\xa2id")?.uuid()?),
        agent: AgentId(fields.named(b"\xa5agent")?.uuid()?),
        log: LogId(fields.named(b"\xa3log")?.number()?),
        created_at: fields.named(b"\xaacreated_at")?.moment()?,
        updated_at: fields.named(b"\xaaupdated_at")?.moment()?,
        label: fields.named(b"\xa5label")?.text_or_nil()?.map(Box::from),
        message_count: fields.named(b"\xadmessage_count")?.small()?,
        next_ordinal: fields.named(b"\xacnext_ordinal")?.small()?,
        interrupted: fields.named(b"\xabinterrupted")?.flag()?,
        ephemeral: fields.named(b"\xa9ephemeral")?.flag()?,
        compacted: fields.named(b"\xa9compacted")?.small()?,
        stored: if has_rows { fields.named(b"\xa6stored")?.small()? } else { 0 },
        taint: Taint::default(),
        addresses: Vec::new(),
        ending: None,
        is_strangers: false,
    };
    fields.rest.is_empty().then_some(record)
}

/// What is left of a record: MessagePack, a map of so many fields.
struct Fields<'v> {
    count: u8,
    rest: &'v [u8],
}

impl<'v> Fields<'v> {
    fn of(value: &'v [u8]) -> Option<Self> {
        match value {
            [VERSION, head @ 0x80..=0x8f, rest @ ..] => Some(Self { count: head & 0x0f, rest }),
            _ => None,
        }
    }

    /// The next field, if it has this name; the name begins with the byte for its length.
    fn named(&mut self, name: &[u8]) -> Option<&mut Self> {
        self.rest = self.rest.strip_prefix(name)?;
        Some(self)
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*taken)
    }

    fn number(&mut self) -> Option<u64> {
        let [head] = self.take()?;
        Some(match head {
            0..=0x7f => head.into(),
            0xcc => u8::from_be_bytes(self.take()?).into(),
            0xcd => u16::from_be_bytes(self.take()?).into(),
            0xce => u32::from_be_bytes(self.take()?).into(),
            0xcf => u64::from_be_bytes(self.take()?),
            _ => return None,
        })
    }

    fn small(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    fn moment(&mut self) -> Option<Timestamp> {
        Some(Timestamp(self.number()?.try_into().ok()?))
    }

    fn flag(&mut self) -> Option<bool> {
        match self.take()? {
            [0xc2] => Some(false),
            [0xc3] => Some(true),
            _ => None,
        }
    }

    fn uuid(&mut self) -> Option<Uuid> {
        let [0xc4, 16] = self.take()? else { return None };
        self.take().map(Uuid::from_bytes)
    }

    /// 32 bytes, which are stored as an array of numbers.
    fn bytes(&mut self) -> Option<[u8; 32]> {
        let [0xdc, 0, 32] = self.take()? else { return None };
        let mut bytes = [0; 32];
        for byte in &mut bytes {
            *byte = match self.take()? {
                [small @ 0..=0x7f] => small,
                [0xcc] => u8::from_be_bytes(self.take()?),
                _ => return None,
            };
        }
        Some(bytes)
    }

    fn text(&mut self) -> Option<&'v str> {
        let length = match self.take()? {
            [head @ 0xa0..=0xbf] => head & 0x1f,
            [0xd9] => u8::from_be_bytes(self.take()?),
            _ => return None,
        };
        let (text, rest) = self.rest.split_at_checked(length.into())?;
        self.rest = rest;
        std::str::from_utf8(text).ok()
    }

    fn text_or_nil(&mut self) -> Option<Option<&'v str>> {
        match self.rest {
            [0xc0, rest @ ..] => {
                self.rest = rest;
                Some(None)
            }
            _ => self.text().map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kernel::record::{decode, encode};

    fn id() -> impl Strategy<Value = Uuid> {
        any::<u128>().prop_map(Uuid::from_u128)
    }

    /// Numbers of every length.
    fn number() -> impl Strategy<Value = u64> {
        (any::<u64>(), 0_u32..64).prop_map(|(bits, shift)| bits >> shift)
    }

    fn moment() -> impl Strategy<Value = Timestamp> {
        number().prop_map(|ms| Timestamp((ms >> 1) as i64))
    }

    prop_compose! {
        fn agents()(
            (id, current, parent) in (id(), id(), prop::option::of(id())),
            name in "\\PC{0,80}",
            hash in any::<[u8; 32]>(),
            (created_at, updated_at) in (moment(), moment()),
            (input_tokens, output_tokens) in (number(), number()),
            (stopped, stable) in any::<(bool, bool)>(),
        ) -> AgentRecord {
            AgentRecord {
                id: AgentId(id),
                name: name.into(),
                manifest: ManifestHash(hash),
                current: SessionId(current),
                created_at,
                updated_at,
                input_tokens,
                output_tokens,
                state: if stopped { AgentState::Stopped } else { AgentState::Running },
                mode: if stable { AgentMode::Stable } else { AgentMode::Normal },
                parent: parent.map(AgentId),
                taint: AgentTaint::default(),
                imported_from: None,
                owner: None,
            }
        }
    }

    prop_compose! {
        fn sessions()(
            (id, agent) in (id(), id()),
            label in prop::option::of("\\PC{0,80}"),
            (created_at, updated_at) in (moment(), moment()),
            log in number(),
            (message_count, next_ordinal, compacted, stored) in any::<(u32, u32, u32, u32)>(),
            (interrupted, ephemeral) in any::<(bool, bool)>(),
        ) -> SessionRecord {
            SessionRecord {
                id: SessionId(id),
                agent: AgentId(agent),
                log: LogId(log),
                created_at,
                updated_at,
                label: label.map(Into::into),
                message_count,
                next_ordinal,
                interrupted,
                ephemeral,
                compacted,
                stored,
                taint: Taint::default(),
                addresses: Vec::new(),
                ending: None,
                is_strangers: false,
            }
        }
    }

    /// Has `read` either no answer for these bytes, or the one of the reader that knows all forms?
    fn agrees<T>(read: fn(&[u8]) -> Option<T>, value: &[u8]) -> bool
    where
        T: PartialEq + serde::de::DeserializeOwned,
    {
        read(value).is_none_or(|record| decode::<T>(b"", value).is_ok_and(|other| other == record))
    }

    proptest! {
        #[test]
        fn what_is_stored_of_an_agent_is_read(record in agents()) {
            // Longer texts are read by the other reader.
            prop_assume!(record.name.len() < 256);
            prop_assert_eq!(agent(&encode(&record)), Some(record));
        }

        #[test]
        fn what_is_stored_of_a_session_is_read(record in sessions()) {
            prop_assume!(record.label.as_ref().is_none_or(|label| label.len() < 256));
            prop_assert_eq!(session(&encode(&record)), Some(record));
        }

        #[test]
        fn damaged_bytes_are_read_alike_or_not_at_all(
            (agents, sessions) in (agents(), sessions()),
            (at, byte) in any::<(prop::sample::Index, u8)>(),
            cut in any::<prop::sample::Index>(),
        ) {
            let (mut one, mut other) = (encode(&agents), encode(&sessions));
            prop_assert!(agent(&one[..cut.index(one.len())]).is_none());
            prop_assert!(session(&other[..cut.index(other.len())]).is_none());
            let (one_at, other_at) = (at.index(one.len()), at.index(other.len()));
            (one[one_at], other[other_at]) = (byte, byte);
            prop_assert!(agrees(agent, &one));
            prop_assert!(agrees(session, &other));
        }
    }

    #[test]
    fn what_few_records_have_is_left_to_the_other_reader() {
        let mut record = SessionRecord {
            id: SessionId(Uuid::nil()),
            agent: AgentId(Uuid::nil()),
            log: LogId(1),
            created_at: Timestamp(1),
            updated_at: Timestamp(-1),
            label: None,
            message_count: 0,
            next_ordinal: 0,
            interrupted: false,
            ephemeral: false,
            compacted: 0,
            stored: 0,
            taint: Taint::NONE,
            addresses: Vec::new(),
            ending: None,
            is_strangers: false,
        };
        assert_eq!(session(&encode(&record)), None, "a moment before 1970");
        record.updated_at = Timestamp(2);
        assert!(session(&encode(&record)).is_some());
        record.is_strangers = true;
        assert_eq!(session(&encode(&record)), None);
        record.is_strangers = false;
        record.addresses = vec![1, u64::MAX];
        assert_eq!(session(&encode(&record)), None);
        record.taint = Taint::WEB;
        assert_eq!(session(&encode(&record)), None);
        assert_eq!(decode::<SessionRecord>(b"", &encode(&record)).unwrap(), record);
    }
}
