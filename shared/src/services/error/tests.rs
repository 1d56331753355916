//! The texts of all errors, one of each variant.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use super::*;
use crate::domain::access::Scope;
use crate::domain::deployment;
use crate::domain::environment::{Diagnostic, Span};
use crate::domain::ids::{EnvironmentId, KeyOwner, StackId, StateId, UpdateId};
use crate::domain::json_schema::Schema;
use crate::domain::names::{
    EnvironmentAddress, EnvironmentTagName, InputName, Login, OrgName, OutputName, ProjectName, ProviderName,
    StackAddress, StateAddress, TeamName, TokenName,
};
use crate::domain::oidc::IssuerUrl;
use crate::domain::oidc::jwk::InvalidKeys;
use crate::domain::oidc::policy::InvalidPolicies;
use crate::domain::principal::Principal;
use crate::domain::protection::Protection;
use crate::domain::role::{Right, Role};
use crate::domain::sign_in::BadClaims;
use crate::domain::tfstate::{
    Document, Filter, InvalidLock, LabelKey, LabelPolicy, LockInfo, Refused, Rule, Violation,
};
use crate::domain::update::{NotNow, Outcome, Requester, SealedBy, UpdateKind};
use crate::journal::BatchError;
use crate::layout::StateHolder;
use crate::ports::Timestamp;

const AT: Timestamp = Timestamp(1_700_000_000_000_000_000);

fn login() -> Login {
    Login::parse("alice").unwrap()
}

fn token() -> TokenName {
    TokenName::parse("laptop").unwrap()
}

fn org() -> OrgName {
    OrgName::parse("acme").unwrap()
}

fn team() -> TeamName {
    TeamName::parse("platform").unwrap()
}

fn requester() -> Requester {
    Requester { login: login(), token: token(), of: Principal::User }
}

fn stack() -> StackAddress {
    StackAddress::parse("acme", "web", "dev").unwrap()
}

fn state() -> StateAddress {
    StateAddress::parse("acme", "net", Some("prod")).unwrap()
}

fn environment() -> EnvironmentAddress {
    EnvironmentAddress::parse("acme", "web", "base").unwrap()
}

fn not_allowed() -> Box<NotAllowed> {
    Box::new(NotAllowed {
        what: "this",
        needs: Right::Apply,
        role: Role::Plan,
        is_held: false,
        may: Some(Role::Outputs),
        org: Some(org()),
        on: None,
        of: Principal::User,
        login: login(),
        token: token(),
        within: None,
        admins: vec![login()],
    })
}

fn protection() -> Protection {
    Protection { by: requester(), at: AT, reason: "it is production".to_owned() }
}

fn held(last_write: Option<Timestamp>, until: Option<Timestamp>) -> UpdateError {
    UpdateError::Held(Box::new(Holder {
        address: stack(),
        update: UpdateId::new(uuid::Uuid::from_u128(7)),
        kind: UpdateKind::Update,
        requester: requester(),
        since: AT,
        until,
        last_write,
        now: AT.plus(Duration::from_secs(90)),
    }))
}

fn holder(by_hand: bool) -> Box<StateHolder> {
    let info = LockInfo {
        id: "l-1".to_owned(),
        operation: if by_hand { "" } else { "OperationTypeApply" }.to_owned(),
        info: "a repair".to_owned(),
        who: "alice@laptop".to_owned(),
        ..LockInfo::default()
    };
    Box::new(StateHolder { info, by: requester(), user_made: Some(AT), since: AT, by_hand })
}

fn deleted() -> Box<ReservedName> {
    let id = StateId::parse("01890000-0000-7000-8000-000000000001").unwrap();
    Box::new(ReservedName { id, name: state(), address: state(), by: Some(login()), at: AT })
}

fn input() -> Vec<InvalidInput> {
    use InvalidInput as I;
    let bad_utf8 = String::from_utf8(vec![0xff]).unwrap_err().utf8_error();
    let bad_json = || serde_json::from_str::<u8>("{").unwrap_err();
    let owner = KeyOwner::Environment(EnvironmentId::new(uuid::Uuid::from_u128(1)));
    vec![
        I::Time { name: "startTime", found: "noon".to_owned() },
        I::AuditFormat("xml".to_owned()),
        I::AuditOrder("random".to_owned()),
        I::ProjectAndName("web".to_owned()),
        I::Name(Login::parse("a b").unwrap_err()),
        I::Batch(BatchError::TooManyEntries),
        I::Deployment(deployment::inspect(b"{}").unwrap_err()),
        I::TooManyResources { what: "resources and operations", count: 500_001, max: 500_000 },
        I::State(Document::read(b"{}").unwrap_err()),
        I::Lock(InvalidLock::NoId),
        I::TokenPage { max: 1_000 },
        I::TokenFilter,
        I::ResourceFilter { bytes_max: 200 },
        I::ResourceAddress,
        I::Label(LabelKey::parse("A").unwrap_err()),
        I::Filter(Filter::parse("a ==").unwrap_err()),
        I::LabelPolicy(
            serde_json::from_str::<LabelPolicy>(r#"{"maxKeys":0,"requiredKeys":["a"]}"#)
                .unwrap()
                .check()
                .unwrap_err(),
        ),
        I::Schema { output: "url".to_owned(), source: Schema::read(&serde_json::json!([])).unwrap_err() },
        I::Grant(Scope::parse("web").unwrap_err()),
        I::Role("owner".to_owned()),
        I::NameKind,
        I::RoleId,
        I::Permission { what: "stack", known: "0, 101, 102, 103 or 104" },
        I::MaxOpenDuration,
        I::TeamMember,
        I::Path("it is not UTF-8".to_owned()),
        I::BodyNotText(bad_utf8),
        I::BodyShape(bad_json()),
        I::BodyNotGzip,
        I::BodyDamaged(std::io::Error::other("corrupt deflate stream")),
        I::BodyLost("connection reset".to_owned()),
        I::BodyTooLong,
        I::BodyChanged,
        I::ContinuationToken,
        I::Number { name: "pageSize".to_owned(), found: "x".to_owned() },
        I::Version,
        I::StateVersion,
        I::StateId,
        I::StateName,
        I::StateWithoutProject,
        I::ProtectionReason { characters_max: 500 },
        I::HoldReason { characters_max: 500 },
        I::Duration,
        I::EnvironmentOverrides,
        I::PropertyPath("write the name of a value in it"),
        I::Direction,
        I::EventType { found: "x".to_owned(), known: "policy" },
        I::LabelPair,
        I::TooManyLabels { max: 32 },
        I::TooManyWords { max: 20 },
        I::NoUrn,
        I::DryRun,
        I::Unsupported("an environment that belongs to the stack"),
        I::UpdateKind,
        I::UpdateResult("done".to_owned()),
        I::Outcome("done".to_owned()),
        I::Base64(base64::DecodeError::InvalidPadding),
        I::TooManySecrets { count: 2_000, max: 1_000 },
        I::TooLongToEncrypt,
        I::ForeignCiphertext(owner),
        I::TooManyDataKeys(owner),
    ]
}

fn access() -> Vec<AccessError> {
    use AccessError as A;
    vec![
        A::NoToken,
        A::NoStateToken,
        A::NoUpdateToken,
        A::FromWebPage,
        A::UnknownToken,
        A::TokenExpired,
        A::SignInNeeded(Some(org())),
        A::TokenExpiredWithoutLock,
        A::UnknownCertificate,
        A::CertificateExpired,
        A::WrongPassword,
        A::TooManyFailures(Duration::from_secs(30)),
        A::TooManyPasswords,
        A::NotAllowed(not_allowed()),
        A::TokenLivesTooLong { org: org(), days_max: 14 },
        A::NotServerAdmin(login()),
        A::NoOrg(org()),
        A::NoUser(login()),
    ]
}

fn identity() -> Vec<IdentityError> {
    use IdentityError as I;
    vec![
        I::UserExists(login()),
        I::OrgExists(org()),
        I::ReservedLogin("operator"),
        I::ReservedTokenName(token()),
        I::TokenExists { login: login(), name: token() },
        I::TokenNameUsed { org: org(), name: token() },
        I::NoTeam { org: org(), team: TeamName::parse("platform").unwrap() },
        I::UnknownTeam { org: org(), team: "a,b".to_owned() },
        I::TeamExists { org: org(), team: team() },
        I::ReservedTeamName(team()),
        I::TeamTextTooLong { what: "display name", characters_max: 100 },
        I::HiddenCharacters { what: "description of the token" },
        I::InTeam { login: login(), team: team() },
        I::NotInTeam { login: login(), team: team() },
        I::Outsider { login: login(), org: org() },
        I::NoMachineToken { org: org(), name: token() },
        I::EmptyGrant,
        I::AuditorOnPart,
        I::NoGrant { org: org() },
        I::AccessTooLarge { org: org(), what: "grants", count: 1_001, max: 1_000 },
        I::AccessMoved { org: org(), version: "7".to_owned() },
        I::AlreadyMember { login: login(), org: org() },
        I::LastAdmin { login: login(), org: org() },
        I::RemovesSelf(org()),
        I::InvitesSelf,
        I::SignsInAlready { login: login(), org: org() },
        I::AddedByOperator { login: login(), org: org() },
        I::InvitedByOperator { login: login(), why: OperatorsAlone::ServerAdmin },
        I::InvitedByOperator { login: login(), why: OperatorsAlone::OtherOrg },
        I::InvitedByOperator { login: login(), why: OperatorsAlone::Account },
        I::InvitedByOperator { login: login(), why: OperatorsAlone::Link },
        I::NoRole("owner".to_owned()),
        I::CustomRole,
        I::NoToken { login: login(), name: token() },
        I::NoTokenWithId,
        I::TokenOfOtherKind { kind: "a team" },
        I::TokensOfMachine,
        I::NoTokenName,
        I::TokenNameTooLong { characters_max: 40 },
        I::TokenDescriptionTooLong { characters_max: 500 },
        I::TokenExpiryPast,
        I::TokenExpiryTooLate { days_max: 732 },
        I::TokenGraceTooLong { seconds_max: 2_592_000 },
        I::TwoRoles,
        I::ExceedsOwnRole(Role::Plan),
        I::ExceedsOwnOrg(org()),
        I::ExceedsOwnScope(Scope::Organization),
        I::OutlivesOwn(AT),
        I::NoSecretToRotate,
        I::TokenDaysTooMany { days_max: 730 },
        I::OwnTokenLivesTooLong { org: org(), days_max: 14 },
        I::CertificateExpired(AT),
        I::CertificateInUse,
        I::NotAMember { login: login(), org: org(), role: Role::Apply },
        I::PasswordTooShort { characters_min: 12 },
        I::PasswordTooLong { bytes_max: 1_024 },
        I::PasswordLooksLikeToken { prefix: "swt_" },
        I::TooManyMemberships { max: 40 },
        I::TooManyMembers { max: 40 },
    ]
}

fn oidc() -> Vec<OidcError> {
    use OidcError as O;
    let url = || IssuerUrl::parse("https://ci.example.com").unwrap();
    let mut all = vec![
        O::NoIssuer("3f2a".to_owned()),
        O::IssuerExists(url()),
        O::TooManyIssuers { max: 100 },
        O::Url(IssuerUrl::parse("ci.example.com").unwrap_err()),
        O::NoName,
        O::NameTooLong { max: 100 },
        O::NameHidden,
        O::Thumbprint { found: "ab".to_owned(), max: 10 },
        O::Lifetime { max: 90_000 },
        O::Keys(InvalidKeys::NotASet),
        O::KeysTooLong { max: 65_536 },
        O::NoAddress,
        O::AwsHasNoKeys,
        O::Unreachable { url: url(), why: "it did not answer".to_owned() },
        O::KeysAreRegistered,
        O::Policies(InvalidPolicies { number: 2, what: "it has no rule".to_owned() }),
        O::PoliciesTooLong { max: 65_536 },
        O::NotInPerson,
        O::NoConsent(login()),
        O::TooManyConsents { login: login(), max: 100 },
    ];
    all.extend(exchange().into_iter().map(O::Exchange));
    all
}

fn parameters() -> Vec<BadParameter> {
    use BadParameter as P;
    vec![
        P::Missing("code"),
        P::Form(<serde_urlencoded::de::Error as serde::de::Error>::custom("invalid character")),
        P::Expiration,
        P::TokenTooLong { bytes_max: 16_384 },
        P::NotJwt,
        P::NotProof,
        P::TokenType { jwt: "urn:id_token", proof: "urn:proof" },
        P::RequestedType { prefix: "urn:" },
        P::OrgScope,
        P::TeamScope,
        P::PersonalScope,
        P::ScopeName(TeamName::parse("a b").unwrap_err()),
    ]
}

fn exchange() -> Vec<ExchangeError> {
    use ExchangeError as E;
    let url = IssuerUrl::parse("https://ci.example.com").unwrap();
    let mut all: Vec<_> = parameters().into_iter().map(E::Parameter).collect();
    all.extend([
        E::GrantType,
        E::Code,
        E::Audience,
        E::NotAccepted,
        E::NoConsent { login: login(), org: org(), url },
        E::NoTeam { team: TeamName::parse("platform").unwrap(), org: org() },
        E::KeysUnavailable,
        E::TooManyProofs(Duration::from_secs(30)),
        E::TooManyQuestions,
    ]);
    all
}

fn sign_ins() -> Vec<SignInError> {
    use SignInError as S;
    let provider = || ProviderName::parse("corp").unwrap();
    let claim = || "groups".to_owned();
    vec![
        S::NoSession,
        S::SessionTooOld,
        S::OtherSite,
        S::RevealedByPost,
        S::NotSecure,
        S::NoProvider(provider()),
        S::ProviderExists(provider()),
        S::BadAddress("http://id.example.com".to_owned()),
        S::TooManyRules { max: 500 },
        S::BadText { what: "title", bytes_max: 100 },
        S::RuleOfNoOrg(org()),
        S::ProviderDown(provider()),
        S::NoWeb,
        S::ProviderRefused { provider: provider(), code: "access_denied".to_owned() },
        S::NotBegun,
        S::OtherAnswer,
        S::BadToken { provider: provider(), why: BadToken::Unreadable },
        S::BadToken { provider: provider(), why: BadToken::Missing },
        S::BadToken { provider: provider(), why: BadToken::TooLong },
        S::BadToken { provider: provider(), why: BadToken::Expired },
        S::BadToken { provider: provider(), why: BadToken::Audience },
        S::BadToken { provider: provider(), why: BadToken::Issuer },
        S::BadToken { provider: provider(), why: BadToken::Nonce },
        S::BadToken { provider: provider(), why: BadToken::Signature },
        S::BadToken { provider: provider(), why: BadToken::Claims },
        S::Claims(BadClaims::GroupsLeftOut),
        S::Claims(BadClaims::GroupsNotAList(claim())),
        S::Claims(BadClaims::TooManyGroups),
        S::Claims(BadClaims::NoLogin(claim())),
        S::Claims(BadClaims::NotALogin { claim: claim(), found: "a b".to_owned() }),
        S::NoRule(provider()),
        S::LoginTaken(login()),
        S::LoginOfServerAdmin(login()),
        S::LinkedWithOther(login()),
        S::NotLinked { login: login(), provider: provider() },
        S::NoInvitation,
        S::NoSuchSession,
        S::SessionsOfSeveralOrgs(login()),
        S::NotACliLogin { command: "pulumi login", what: "port" },
        S::SessionExceedsToken,
        S::BadField("login"),
    ]
}

fn stacks() -> Vec<StackError> {
    use StackError as S;
    let (address, tag) = (stack(), "owner".to_owned());
    vec![
        S::NotFound(stack()),
        S::NoConfig(stack()),
        S::NoProject { org: org(), project: ProjectName::parse("web").unwrap() },
        S::NoVersion { address: stack(), version: 9 },
        S::Pruned { address: stack(), version: 1, oldest: 4 },
        S::NotIndexed { address: stack(), version: 3 },
        S::NoResource { address: stack(), version: 3, urn: "urn:pulumi:dev::web::t:m:T::a".to_owned() },
        S::NoSecret { address: stack(), version: 3, path: "/outputs/password".to_owned() },
        S::SecretElsewhere(stack()),
        S::NeverUpdated(stack()),
        S::NoTag { address: stack(), tag: tag.clone() },
        S::Exists(stack()),
        S::HasResources,
        S::Protected(Protected::stack(&stack(), &protection())),
        S::VersionOfProtected(Protected::stack(&stack(), &protection())),
        S::NoneDeleted(stack()),
        S::NotDeleted { org: org(), id: "none".to_owned() },
        S::SeveralDeleted { address, found: vec![(StackId::new(uuid::Uuid::from_u128(1)), AT)] },
        S::TagExists { tag: tag.clone(), value: "alice".to_owned() },
        S::TooManyTags { count: 201, max: 200 },
        S::TagTooLong { tag, bytes: 300, bytes_max: 256 },
        S::ProviderTooLong { bytes_max: 16_384 },
        S::PlaintextSecrets,
    ]
}

fn fenced() -> Vec<Fenced> {
    let (login, token) = (login(), token());
    let mut all = vec![
        Fenced::Gone,
        Fenced::NotRunning(NotNow::Over { outcome: Outcome::Failed, by: SealedBy::Expiry, at: AT }),
        Fenced::TokenNotValid,
        Fenced::TokenNotIssued,
        Fenced::Preview,
    ];
    all.extend(
        [
            Revoked::StackDeleted(stack()),
            Revoked::NameTaken(stack()),
            Revoked::UserRemoved(login.clone()),
            Revoked::TokenRevoked { login: login.clone(), token: token.clone() },
            Revoked::TokenExpired { login: login.clone(), token },
            Revoked::NotAMember { login, org: org() },
            Revoked::NotAllowed(not_allowed()),
        ]
        .map(Fenced::Revoked),
    );
    all
}

fn updates() -> Vec<UpdateError> {
    use UpdateError as U;
    let id = UpdateId::new(uuid::Uuid::from_u128(7));
    let mut all = vec![
        U::NotFound { address: stack(), update: "u-1".to_owned() },
        held(None, Some(AT.plus(Duration::from_secs(300)))),
        held(Some(AT), None),
        U::OnHold(OnHold::of(&stack(), &protection())),
        U::NotYours { dry_run: true, requester: requester() },
        U::NotNow(NotNow::NotStarted),
        U::NotNow(NotNow::StaleStart),
        U::NotNow(NotNow::AlreadyRunning),
        U::NotNow(NotNow::LeaseOver { until: AT }),
        U::NotNow(NotNow::LeaseHeld { until: AT }),
        U::NotNow(NotNow::Over { outcome: Outcome::Succeeded, by: SealedBy::Client, at: AT }),
        U::NotNow(NotNow::NotSealed),
        U::NothingToCancel { outcome: Outcome::Failed, by: SealedBy::Cancel(login()), at: AT },
        U::NoFit(DeltaError::NoBase),
        U::OtherSaves { journals: true },
        U::OtherSaves { journals: false },
        U::NoneHolds(stack()),
        U::OtherHolds { address: stack(), id },
        U::NoSlot { update: id, slots: 3, slot: 5 },
    ];
    all.extend(fenced().into_iter().map(U::Fenced));
    all
}

fn states() -> Vec<StateError> {
    use StateError as S;
    let address = || state().to_string();
    let violation = Violation {
        rule: Rule::MaxKeys,
        key: None,
        words: "there are 3 labels, and 2 are the most".to_owned(),
    };
    let mut all = vec![
        S::NotFound(address()),
        S::Deleted(deleted()),
        S::WriteOfDeleted { deleted: deleted(), kept: "0a1b".to_owned() },
        S::LockOfDeleted(deleted()),
        S::NoVersion { state: address(), version: "9".to_owned() },
        S::Exists(address()),
        S::NameLeadsTo { name: Box::new(state()), other: Box::new(state()) },
        S::Forbidden(address()),
        S::NoSuchAddress("/tfstate/x".to_owned()),
        S::Encrypted,
        S::ResourcesUnknown { version: "9".to_owned() },
        S::NoResource { address: "module.a.t.b[0]".to_owned(), version: "9".to_owned() },
        S::Locked(holder(false)),
        S::Locked(holder(true)),
        S::NotHolder(holder(false)),
        S::LockNotAllowed(not_allowed()),
        S::Protected(Protected::state(&state(), &protection())),
        S::WriteOfProtected { protected: Protected::state(&state(), &protection()), kept: "0a1b".to_owned() },
        S::HasResources(3),
        S::NearLimit { bytes: 5_000_000, bytes_max: 4_500_000 },
        S::SerialAtEnd,
        S::OtherOrganization,
        S::OutputName,
        S::TooManySchemas { max: 100 },
        S::NoDependency("d-1".to_owned()),
        S::InputTaken {
            consumer: Box::new(state()),
            input: InputName::parse("url").unwrap(),
            id: "d-1".to_owned(),
        },
        S::TooManyDependencies { count: 10_000, max: 10_000 },
        S::Cycle("acme/net/prod, acme/web/prod, acme/net/prod".to_owned()),
        S::NoInputName { producer: state(), output: OutputName::parse("_").unwrap() },
        S::LabelPolicyMoved { version: 3, changed: Some((login(), AT)) },
        S::LabelPolicyViolated { org: org(), version: 3, violation: Box::new(violation) },
    ];
    let refused = [
        Refused::Locked,
        Refused::Displaced,
        Refused::Stale,
        Refused::LockRequired,
        Refused::Deleted,
        Refused::Protected,
        Refused::Strict,
    ];
    all.extend(refused.map(|why| S::WriteRefused { why, kept: "0a1b".to_owned() }));
    all
}

fn environments() -> Vec<EnvironmentError> {
    use EnvironmentError as E;
    let tag = || EnvironmentTagName::parse("stable").unwrap();
    let diagnostic = Diagnostic::warning("web/base", Span::default(), "unknown key");
    vec![
        E::NotFound(environment()),
        E::NoneDeleted(environment()),
        E::NoRevision { environment: environment(), revision: "revision 9".to_owned() },
        E::NoTag { environment: environment(), tag: tag() },
        E::Exists(environment()),
        E::TagExists(tag()),
        E::Moved(environment()),
        E::Protected(environment()),
        E::Definition(vec![diagnostic]),
        E::NoSession("s-1".to_owned()),
        E::OpenedIsGone("web/base".to_owned()),
        E::AllRetracted { environment: environment(), revision: "revision 3".to_owned() },
        E::SecretInPlace,
        E::HistoryOrRevision,
        E::TooManyRevisions { environment: environment(), revisions: 2_000, max: 1_000 },
        E::ReasonTooLong { bytes_max: 1_024 },
        E::RetractCurrent,
        E::ReplacesItself,
        E::ReplacementRetracted(3),
        E::TooManyTags { max: 200 },
        E::TagTooLong { bytes: 300, bytes_max: 256 },
        E::NumberIsNotATag,
        E::NotARevision,
        E::Lasts,
        E::NoValue,
        E::TooManyRounds { max: 8 },
        E::TooManyImports { max: 100 },
        E::TooManyStacks { max: 100 },
        E::OutputsTooLong { mebibytes_max: 8 },
        E::ForeignOutput,
        E::SecretNotText,
    ]
}

fn maintenance() -> Vec<MaintenanceError> {
    use MaintenanceError as M;
    vec![
        M::BackupFormat { found: 3, known: 2 },
        M::NothingToBackUp,
        M::OtherBackup,
        M::NotABackup,
        M::CopyUnfinished,
        M::SourceChanges,
        M::NothingToCopy,
        M::UpdatesRunning(2),
        M::TargetOfOtherCopy,
        M::TargetNotEmpty,
        M::OtherCopyBegan,
        M::TargetChanged { partition: "stack#1".to_owned(), sort: "head".to_owned() },
    ]
}

/// One error of each variant of each family, and of the errors that any room can return.
pub(crate) fn all() -> Vec<Error> {
    let mut all = vec![
        Error::TooLarge { what: "a request body", bytes: 11, bytes_max: 10 },
        Error::Contended("the stack"),
        Error::NoRoom(Full),
        Error::Port(PortError::NotDone { what: "the read", source: "the disk is slow".into() }),
        Error::MasterKey("disabled".into()),
        Error::Broken("the head of stack 1 is not JSON".to_owned()),
        Error::IndexDamaged("the blob snap/1/2-index-3 is missing".to_owned()),
        Error::Internal("a route without a body limit reads a body".to_owned()),
        Error::TooNew("the head of stack 1 has format 9".to_owned()),
    ];
    all.extend(input().into_iter().map(Error::Invalid));
    all.extend(access().into_iter().map(Error::Access));
    all.extend(identity().into_iter().map(Error::Identity));
    all.extend(sign_ins().into_iter().map(Error::SignIn));
    all.extend(oidc().into_iter().map(Error::from));
    all.extend(stacks().into_iter().map(Error::Stack));
    all.extend(updates().into_iter().map(Error::Update));
    all.extend(states().into_iter().map(Error::State));
    all.extend(environments().into_iter().map(Error::Environment));
    all.extend(maintenance().into_iter().map(Error::Maintenance));
    all
}

/// The variants of an enum, as its file writes them.
fn variants<'a>(source: &'a str, name: &str) -> BTreeSet<&'a str> {
    let body = source.split(&format!("pub enum {name} {{\n")).nth(1).expect("the file has the enum");
    let body = body.split("\n}\n").next().unwrap();
    let is_variant =
        |line: &&str| line.starts_with("    ") && line[4..].starts_with(|c: char| c.is_ascii_uppercase());
    let name = |line: &'a str| line.trim().split(|c: char| !c.is_alphanumeric()).next().unwrap();
    body.lines().filter(is_variant).map(name).collect()
}

#[track_caller]
fn holds_each_variant<T: std::fmt::Debug>(samples: &[T], source: &str, name: &str) {
    let shown: Vec<String> = samples.iter().map(|sample| format!("{sample:?}")).collect();
    let held =
        shown.iter().map(|shown| shown.split(|c: char| !c.is_alphanumeric()).next().unwrap()).collect();
    assert_eq!(variants(source, name), held, "{name}");
}

#[test]
fn the_samples_hold_each_variant_of_each_family() {
    holds_each_variant(&all(), include_str!("mod.rs"), "Error");
    holds_each_variant(&input(), include_str!("input.rs"), "InvalidInput");
    holds_each_variant(&access(), include_str!("access.rs"), "AccessError");
    holds_each_variant(&identity(), include_str!("identity.rs"), "IdentityError");
    holds_each_variant(&sign_ins(), include_str!("sign_in.rs"), "SignInError");
    holds_each_variant(&oidc(), include_str!("oidc.rs"), "OidcError");
    holds_each_variant(&exchange(), include_str!("oidc.rs"), "ExchangeError");
    holds_each_variant(&parameters(), include_str!("oidc.rs"), "BadParameter");
    holds_each_variant(&stacks(), include_str!("stack.rs"), "StackError");
    holds_each_variant(&updates(), include_str!("update.rs"), "UpdateError");
    holds_each_variant(&fenced(), include_str!("update.rs"), "Fenced");
    holds_each_variant(&states(), include_str!("state.rs"), "StateError");
    holds_each_variant(&environments(), include_str!("environment.rs"), "EnvironmentError");
    holds_each_variant(&maintenance(), include_str!("maintenance.rs"), "MaintenanceError");
}

#[test]
fn every_text_says_what_happened_and_what_to_do() {
    let mut wrong = String::new();
    for error in all() {
        let text = error.to_string();
        let sentences = text.split(". ").count();
        // Clients match the first sentence of this error, including its capital letter and its period.
        let is_fixed = matches!(error, Error::Update(UpdateError::Held(_)));
        // Only the operator sees these, and the command adds the next step.
        let is_operators = matches!(
            error,
            Error::Port(_) | Error::MasterKey(_) | Error::Broken(_) | Error::Internal(_) | Error::TooNew(_)
        );
        let mut check = |holds: bool, rule: &str| {
            if !holds {
                let _ = writeln!(wrong, "{rule}: {text}");
            }
        };
        check(sentences <= if is_fixed { 4 } else { 3 }, "one to three sentences");
        check(is_fixed || !text.starts_with(|c: char| c.is_uppercase()), "begins lower-case");
        check(is_fixed || sentences > 1 || !text.ends_with('.'), "one sentence has no period");
        check(is_operators || [": ", "; ", ". "].iter().any(|end| text.contains(end)), "says what to do");
        check(!text.contains("  ") && !text.contains('\n'), "is on one line");
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Both texts once had a sentence in the place of a name.
#[test]
fn a_fixed_sentence_has_a_variant_of_its_own() {
    assert_eq!(
        StateError::Encrypted.to_string(),
        "the client encrypted this state, so the server cannot read its outputs: read the whole state instead"
    );
    assert_eq!(
        EnvironmentError::OpenedIsGone("web/base".to_owned()).to_string(),
        "environment web/base, which was opened, has been deleted since: open one that exists"
    );
}

#[test]
fn the_error_of_an_unknown_role_names_all_roles() {
    let text = IdentityError::NoRole("owner".to_owned()).to_string();
    for role in Role::ALL {
        assert!(text.contains(role.as_str()), "{text}");
    }
}
