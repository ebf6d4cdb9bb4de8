//! Who may answer.

use crate::elicitation::Answerers;
use crate::prose::Refusal;

use super::Sender;

/// The rules of a room, as the configuration has them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// Only these people. An empty list is nobody.
    pub users: Option<Vec<String>>,
    /// Only people with at least this power.
    pub min_power: Option<i64>,
    /// In encrypted rooms, only from verified devices.
    pub require_verified: bool,
}

/// Whether a person may answer a question, given the room's rules and the question's own. Both
/// must hold.
///
/// # Errors
/// Why they may not.
pub fn may_answer(sender: &Sender, rules: &Rules, own: &Answerers) -> Result<(), Refusal> {
    for (users, min_power) in [(&rules.users, rules.min_power), (&own.users, own.min_power)] {
        if let Some(users) = users {
            if users.is_empty() {
                return Err(Refusal::Nobody);
            }
            if !users.contains(&sender.user_id) {
                return Err(Refusal::NotListed);
            }
        }
        if let Some(needed) = min_power
            && sender.power < needed
        {
            return Err(Refusal::TooLittlePower { needed });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mira(power: i64) -> Sender {
        Sender {
            user_id: "@mira:example.org".to_owned(),
            display_name: None,
            joined: true,
            power,
            alone: false,
        }
    }

    fn only(users: &[&str]) -> Vec<String> {
        users.iter().map(|&user| user.to_owned()).collect()
    }

    #[test]
    fn anybody_may_answer_where_no_rule_says_otherwise() {
        assert_eq!(
            may_answer(&mira(0), &Rules::default(), &Answerers::default()),
            Ok(())
        );
    }

    /// Pain: anyone.
    #[test]
    fn an_empty_list_is_nobody_wherever_it_stands() {
        let nobody = Rules {
            users: Some(only(&[])),
            ..Rules::default()
        };
        assert_eq!(
            may_answer(&mira(100), &nobody, &Answerers::default()),
            Err(Refusal::Nobody)
        );
        let nobody = Answerers {
            users: Some(only(&[])),
            min_power: None,
        };
        assert_eq!(
            may_answer(&mira(100), &Rules::default(), &nobody),
            Err(Refusal::Nobody)
        );
    }

    #[test]
    fn users_and_power_must_both_hold() {
        let both = Answerers {
            users: Some(only(&["@mira:example.org"])),
            min_power: Some(50),
        };
        assert_eq!(
            may_answer(&mira(49), &Rules::default(), &both),
            Err(Refusal::TooLittlePower { needed: 50 })
        );
        assert_eq!(may_answer(&mira(50), &Rules::default(), &both), Ok(()));
        let other = Answerers {
            users: Some(only(&["@ben:example.org"])),
            min_power: Some(0),
        };
        assert_eq!(
            may_answer(&mira(50), &Rules::default(), &other),
            Err(Refusal::NotListed)
        );
    }

    #[test]
    fn a_question_cannot_widen_what_the_room_narrows() {
        let room = Rules {
            users: Some(only(&["@ben:example.org"])),
            ..Rules::default()
        };
        let own = Answerers {
            users: Some(only(&["@mira:example.org"])),
            min_power: None,
        };
        assert_eq!(may_answer(&mira(100), &room, &own), Err(Refusal::NotListed));
    }

    #[test]
    fn a_creator_of_a_new_room_has_more_power_than_any_number() {
        let own = Answerers {
            users: None,
            min_power: Some(i64::MAX),
        };
        assert_eq!(may_answer(&mira(i64::MAX), &Rules::default(), &own), Ok(()));
    }
}
