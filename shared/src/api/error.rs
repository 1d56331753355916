//! Maps each refusal to a status, a reason and a body.

use axum::Json;
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::domain::names::Login;
use crate::journal::BatchError;
use crate::services::Error;
use crate::services::error::{
    AccessError, EnvironmentError, ExchangeError, Fenced, IdentityError, InvalidInput, NotAllowed, OidcError,
    SignInError, StackError, StateError, UpdateError,
};
use crate::wire::Reason;
use crate::wire::environments::DefinitionError;
use crate::wire::oidc::TokenError;
use crate::wire::pulumi::{ErrorBody, SignInAgain};
use crate::wire::tfstate::LockedBody;

/// Why a request gets an error.
#[derive(Debug)]
pub enum Failure {
    /// A use case refused it.
    Refused(Error),
    /// No route has this method and path.
    NoRoute(String),
    /// This server lacks the feature that the path belongs to.
    NotSupported(&'static str),
    /// The token has this many concurrent requests, the maximum.
    TooManyRequests(usize),
    /// The body did not arrive in time.
    Stalled,
    /// The request is longer than its gateway allows, in bytes.
    RequestTooLargeForGateway(usize),
    /// The answer is longer than the gateway allows, in bytes.
    AnswerTooLong(usize),
    /// A part that the server needs does not work.
    NotReady(&'static str),
}

impl<E: Into<Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Refused(error.into())
    }
}

/// Marks an answer for the operator's log: a failure of the server, with its chain of causes.
#[derive(Debug, Clone)]
pub(crate) struct OperatorNote(pub(crate) String);

/// The text and the reason of an error, for an answer that is shown as a page.
#[derive(Debug, Clone)]
pub(crate) struct ErrorText {
    pub(crate) text: String,
    pub(crate) reason: Reason,
}

/// Marks an answer for the metrics, with a label for refusals that are counted separately.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CountedAs(pub(crate) &'static str);

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let (status, reason) = self.kind();
        let message = format!("{}: {}", phrase(status), self.text());
        let mut response = match &self {
            // Clients show their user the holder of the lock.
            Self::Refused(Error::State(StateError::Locked(holder) | StateError::NotHolder(holder))) => {
                (status, Json(LockedBody::of(holder, status.as_u16(), message, reason))).into_response()
            }
            // There is no holder. Clients show their user the text in the place of one.
            Self::Refused(Error::State(
                why @ (StateError::LockNotAllowed(_) | StateError::LockOfDeleted(_)),
            )) => {
                let body = LockedBody::refused(&why.to_string(), status.as_u16(), message, reason);
                (status, Json(body)).into_response()
            }
            // Clients show their user the position in the definition.
            Self::Refused(Error::Environment(EnvironmentError::Definition(diagnostics))) => {
                let diagnostics = diagnostics.clone();
                (status, Json(DefinitionError { code: status.as_u16(), message, reason, diagnostics }))
                    .into_response()
            }
            // The CLI shows its user where to sign in again.
            Self::Refused(Error::Access(AccessError::SignInNeeded(Some(org)))) => {
                (status, Json(SignInAgain::of(org, status.as_u16(), message, reason))).into_response()
            }
            _ => refusal(status, message, reason),
        };
        // The CLI waits this long plus one second, for calls that it may repeat.
        let retry_after = match &self {
            Self::Refused(Error::Access(AccessError::TooManyFailures(wait))) => Some(wait.as_secs()),
            Self::Refused(Error::Oidc(error)) => match **error {
                OidcError::Exchange(ExchangeError::TooManyProofs(wait)) => Some(wait.as_secs()),
                _ => (status == StatusCode::TOO_MANY_REQUESTS).then_some(1),
            },
            Self::Refused(Error::NoRoom(_)) => Some(2),
            _ => (status == StatusCode::TOO_MANY_REQUESTS).then_some(1),
        };
        if let Some(seconds) = retry_after {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response.extensions_mut().insert(ErrorText { text: self.text(), reason });
        if let Self::Refused(error) = &self
            && let Some(liftable) = Liftable::of(error)
        {
            response.extensions_mut().insert(liftable);
        }
        if let Some(label) = counted_as(reason) {
            response.extensions_mut().insert(CountedAs(label));
        }
        if let Self::Refused(error) = &self
            && (status.is_server_error() || matches!(error, Error::MasterKey(_)))
        {
            response.extensions_mut().insert(OperatorNote(chain(error)));
        }
        response
    }
}

/// Marks a refusal that an admin of the organization can lift, as long as it names none.
#[derive(Debug, Clone)]
pub(super) struct Liftable {
    pub(super) why: Box<NotAllowed>,
    /// Whether it refuses a lock, which has another form.
    is_of_lock: bool,
}

impl Liftable {
    fn of(error: &Error) -> Option<Self> {
        let (why, is_of_lock) = match error {
            Error::Access(AccessError::NotAllowed(why)) => (why, false),
            Error::State(StateError::LockNotAllowed(why)) => (why, true),
            _ => return None,
        };
        why.lifted_in().filter(|_| why.admins.is_empty())?;
        Some(Self { why: why.clone(), is_of_lock })
    }

    /// The refusal, with the admins who can lift it.
    pub(super) fn naming(self, admins: Vec<Login>) -> Failure {
        let mut why = self.why;
        why.admins = admins;
        match self.is_of_lock {
            true => StateError::LockNotAllowed(why).into(),
            false => AccessError::NotAllowed(why).into(),
        }
    }
}

impl Failure {
    /// The answer in the form of the exchange of tokens.
    pub(super) fn into_token_answer(self) -> Response {
        let (status, reason) = self.kind();
        let error = match &self {
            Self::Refused(Error::Oidc(error)) => match &**error {
                OidcError::Exchange(error) => word_of_exchange(error),
                _ => "invalid_request",
            },
            // The token that should be exchanged for a short-lived one.
            Self::Refused(Error::Access(_)) => "invalid_grant",
            _ if status.is_server_error() => "server_error",
            _ => "invalid_request",
        };
        let message = self.text();
        let mut response = self.into_response();
        let code = status.as_u16();
        let body = TokenError { error, error_description: message.clone(), code, message, reason };
        *response.body_mut() = Json(body).into_response().into_body();
        response
    }

    /// The status and the reason.
    fn kind(&self) -> (StatusCode, Reason) {
        let reason = match self {
            // The only status with a body that clients of states show their user.
            Self::Refused(Error::State(StateError::LockNotAllowed(_))) => {
                return (StatusCode::LOCKED, Reason::RoleTooLow);
            }
            Self::Refused(Error::State(StateError::LockOfDeleted(_))) => {
                return (StatusCode::LOCKED, Reason::StateDeleted);
            }
            Self::Refused(error) => reason(error),
            Self::NoRoute(_) | Self::NotSupported(_) => Reason::NotSupported,
            Self::TooManyRequests(_) => Reason::TooManyRequests,
            Self::Stalled => Reason::RequestTimeout,
            // At this status, the CLI halves a batch of journal entries.
            Self::RequestTooLargeForGateway(_) | Self::AnswerTooLong(_) => Reason::TooLargeForGateway,
            Self::NotReady(_) => Reason::NotReady,
        };
        let status = StatusCode::from_u16(reason.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        (status, reason)
    }

    /// The message for the user, without the status.
    fn text(&self) -> String {
        match self {
            Self::Refused(error) => text(error),
            Self::NoRoute(what) => format!("{what} is not supported by this backend"),
            Self::NotSupported(what) => format!("{what} is not supported by this backend"),
            Self::TooManyRequests(max) => {
                format!("this token has {max} concurrent requests, the maximum: wait for one to end")
            }
            Self::Stalled => "the request's body did not arrive in time: send it again".to_owned(),
            Self::RequestTooLargeForGateway(max) => format!(
                "this server's gateway accepts requests of at most {max} bytes. An update fits if the CLI keeps a journal, \
                 which it sends in small batches. A longer state does not fit: run `statewright serve`, for example in a \
                 container, on the same store"
            ),
            Self::AnswerTooLong(max) => format!(
                "the answer is longer than the {max} bytes that this server's gateway lets through: run `statewright serve`, \
                 for example in a container, on the same store"
            ),
            Self::NotReady(part) => format!("{part} is not ready: try again"),
        }
    }
}

/// A refusal with a body that the CLI understands.
pub(crate) fn refusal(status: StatusCode, message: String, reason: Reason) -> Response {
    (status, Json(ErrorBody { code: status.as_u16(), message, reason })).into_response()
}

/// The metrics label of a reason that is counted separately.
fn counted_as(reason: Reason) -> Option<&'static str> {
    match reason {
        Reason::StackLocked | Reason::StackOnHold | Reason::StateLocked => Some("locked"),
        Reason::Unauthenticated
        | Reason::TokenExpired
        | Reason::TooManyWrongPasswords
        | Reason::PasswordsBusy
        | Reason::TooManyWrongProofs
        | Reason::ProofsBusy => Some("credentials"),
        Reason::UpdateTokenInvalid | Reason::UpdateOver => Some("fenced"),
        Reason::ServerBusy => Some("memory"),
        Reason::TooManyRequests => Some("requests"),
        Reason::RequestTimeout => Some("stalled"),
        Reason::TooLargeForGateway => Some("gateway"),
        _ => None,
    }
}

/// The start of a message.
fn phrase(status: StatusCode) -> &'static str {
    match status {
        StatusCode::PAYLOAD_TOO_LARGE => "Request Too Large",
        status => status.canonical_reason().unwrap_or_default(),
    }
}

fn reason_of_identity(error: &IdentityError) -> Reason {
    use IdentityError as I;
    match error {
        I::TooManyMemberships { .. } | I::TooManyMembers { .. } => Reason::RequestTooLarge,
        I::UserExists(_)
        | I::OrgExists(_)
        | I::TokenExists { .. }
        | I::TokenNameUsed { .. }
        | I::TeamExists { .. } => Reason::NameTaken,
        I::NoTeam { .. } => Reason::TeamNotFound,
        I::NoToken { .. } | I::NoMachineToken { .. } | I::NoTokenWithId => Reason::TokenNotFound,
        I::TokensOfMachine
        | I::ExceedsOwnRole(_)
        | I::ExceedsOwnOrg(_)
        | I::ExceedsOwnScope(_)
        | I::InvitesSelf
        | I::InvitedByOperator { .. }
        | I::SignsInAlready { .. }
        | I::AddedByOperator { .. }
        | I::OutlivesOwn(_) => Reason::RoleTooLow,
        I::TokenNameTooLong { .. }
        | I::TokenDescriptionTooLong { .. }
        | I::TokenExpiryTooLate { .. }
        | I::TokenGraceTooLong { .. }
        | I::TokenDaysTooMany { .. } => Reason::LimitExceeded,
        I::OwnTokenLivesTooLong { .. } => Reason::TokenLivesTooLong,
        I::NoRole(_) => Reason::RoleNotFound,
        I::NoGrant { .. } => Reason::GrantNotFound,
        I::NotInTeam { .. } => Reason::UserNotFound,
        I::InTeam { .. } | I::AlreadyMember { .. } => Reason::MemberExists,
        I::LastAdmin { .. } => Reason::LastAdmin,
        I::AccessMoved { .. } => Reason::AccessChanged,
        I::TeamTextTooLong { .. } | I::AccessTooLarge { .. } => Reason::LimitExceeded,
        _ => Reason::InvalidRequest,
    }
}

fn reason(error: &Error) -> Reason {
    match error {
        Error::Invalid(error) => reason_of_input(error),
        // At this status, the CLI halves a batch of journal entries.
        Error::TooLarge { .. } => Reason::RequestTooLarge,
        Error::Access(error) => reason_of_access(error),
        Error::Oidc(error) => reason_of_oidc(error),
        Error::Identity(error) => reason_of_identity(error),
        // Only the operator's commands can get these.
        Error::Maintenance(_) => Reason::InvalidRequest,
        Error::SignIn(error) => reason_of_sign_in(error),
        Error::Stack(error) => reason_of_stack(error),
        Error::Update(error) => reason_of_update(error),
        Error::State(error) => reason_of_state(error),
        Error::Environment(error) => reason_of_environment(error),
        Error::Contended(_) => Reason::Contended,
        Error::NoRoom(_) => Reason::ServerBusy,
        // Clients retry this for some seconds, like every 5xx, and then show the text.
        Error::Port(error) if error.has_no_room() => Reason::DiskFull,
        Error::Port(_) => Reason::StoreUnavailable,
        // Not a 5xx: clients would retry for seven seconds, to no effect.
        Error::MasterKey(_) => Reason::MasterKeyUnavailable,
        Error::Broken(_) | Error::IndexDamaged(_) => Reason::StoredDataDamaged,
        Error::Internal(_) => Reason::InternalError,
        Error::TooNew(_) => Reason::StoredDataTooNew,
    }
}

fn reason_of_input(error: &InvalidInput) -> Reason {
    match error {
        InvalidInput::Name(_) => Reason::InvalidName,
        InvalidInput::Batch(BatchError::TooManyEntries) | InvalidInput::TooManyResources { .. } => {
            Reason::RequestTooLarge
        }
        InvalidInput::Batch(_) | InvalidInput::Deployment(_) => Reason::InvalidDeployment,
        InvalidInput::State(_) => Reason::InvalidState,
        InvalidInput::Base64(_) | InvalidInput::ForeignCiphertext(_) => Reason::InvalidCiphertext,
        InvalidInput::TooManySecrets { .. }
        | InvalidInput::TooManyLabels { .. }
        | InvalidInput::TooManyWords { .. }
        | InvalidInput::TooLongToEncrypt
        | InvalidInput::TooManyDataKeys(_) => Reason::LimitExceeded,
        InvalidInput::NoUrn
        | InvalidInput::DryRun
        | InvalidInput::Lock(_)
        | InvalidInput::Label(_)
        | InvalidInput::Filter(_)
        | InvalidInput::LabelPolicy(_)
        | InvalidInput::Schema { .. }
        | InvalidInput::Time { .. }
        | InvalidInput::AuditFormat(_)
        | InvalidInput::AuditOrder(_)
        | InvalidInput::ProjectAndName(_)
        | InvalidInput::Grant(_)
        | InvalidInput::Role(_)
        | InvalidInput::NameKind
        | InvalidInput::RoleId
        | InvalidInput::Permission { .. }
        | InvalidInput::MaxOpenDuration
        | InvalidInput::TeamMember
        | InvalidInput::Path(_)
        | InvalidInput::BodyNotText(_)
        | InvalidInput::BodyShape(_)
        | InvalidInput::BodyNotGzip
        | InvalidInput::BodyDamaged(_)
        | InvalidInput::BodyLost(_)
        | InvalidInput::BodyTooLong
        | InvalidInput::BodyChanged
        | InvalidInput::ContinuationToken
        | InvalidInput::TokenPage { .. }
        | InvalidInput::TokenFilter
        | InvalidInput::Number { .. }
        | InvalidInput::Version
        | InvalidInput::StateVersion
        | InvalidInput::StateId
        | InvalidInput::StateName
        | InvalidInput::StateWithoutProject
        | InvalidInput::ProtectionReason { .. }
        | InvalidInput::HoldReason { .. }
        | InvalidInput::Duration
        | InvalidInput::EnvironmentOverrides
        | InvalidInput::PropertyPath(_)
        | InvalidInput::Direction
        | InvalidInput::EventType { .. }
        | InvalidInput::LabelPair
        | InvalidInput::ResourceFilter { .. }
        | InvalidInput::ResourceAddress
        | InvalidInput::Unsupported(_)
        | InvalidInput::UpdateKind
        | InvalidInput::UpdateResult(_)
        | InvalidInput::Outcome(_) => Reason::InvalidRequest,
    }
}

fn reason_of_access(error: &AccessError) -> Reason {
    match error {
        AccessError::NoToken
        | AccessError::NoStateToken
        | AccessError::NoUpdateToken
        | AccessError::FromWebPage
        | AccessError::UnknownToken
        | AccessError::UnknownCertificate
        | AccessError::WrongPassword => Reason::Unauthenticated,
        AccessError::TokenExpired
        | AccessError::TokenExpiredWithoutLock
        | AccessError::CertificateExpired => Reason::TokenExpired,
        AccessError::SignInNeeded(_) => Reason::SignInNeeded,
        AccessError::TooManyFailures(_) => Reason::TooManyWrongPasswords,
        AccessError::TooManyPasswords => Reason::PasswordsBusy,
        AccessError::NotAllowed(_) | AccessError::NotServerAdmin(_) => Reason::RoleTooLow,
        AccessError::TokenLivesTooLong { .. } => Reason::TokenLivesTooLong,
        AccessError::NoOrg(_) => Reason::OrganizationNotFound,
        AccessError::NoUser(_) => Reason::UserNotFound,
    }
}

fn reason_of_oidc(error: &OidcError) -> Reason {
    match error {
        OidcError::NoIssuer(_) => Reason::IssuerNotFound,
        OidcError::NoConsent(_) => Reason::ConsentNotFound,
        OidcError::IssuerExists(_) => Reason::IssuerExists,
        OidcError::NotInPerson => Reason::RoleTooLow,
        OidcError::TooManyIssuers { .. }
        | OidcError::TooManyConsents { .. }
        | OidcError::NameTooLong { .. }
        | OidcError::KeysTooLong { .. }
        | OidcError::PoliciesTooLong { .. } => Reason::LimitExceeded,
        OidcError::Url(_)
        | OidcError::NoName
        | OidcError::NameHidden
        | OidcError::Thumbprint { .. }
        | OidcError::Lifetime { .. }
        | OidcError::Keys(_)
        | OidcError::Unreachable { .. }
        | OidcError::KeysAreRegistered
        | OidcError::NoAddress
        | OidcError::AwsHasNoKeys
        | OidcError::Policies(_) => Reason::InvalidRequest,
        OidcError::Exchange(error) => match error {
            ExchangeError::Parameter(_) | ExchangeError::GrantType | ExchangeError::Audience => {
                Reason::InvalidRequest
            }
            ExchangeError::Code => Reason::LoginCodeNotAccepted,
            ExchangeError::NotAccepted | ExchangeError::NoTeam { .. } => Reason::TokenNotAccepted,
            ExchangeError::NoConsent { .. } => Reason::ConsentMissing,
            ExchangeError::KeysUnavailable => Reason::IssuerUnavailable,
            ExchangeError::TooManyProofs(_) => Reason::TooManyWrongProofs,
            ExchangeError::TooManyQuestions => Reason::ProofsBusy,
        },
    }
}

/// The word of a refusal of the exchange. Sources: RFC 6749, section 5.2, and RFC 8693, section 2.2.2.
fn word_of_exchange(error: &ExchangeError) -> &'static str {
    match error {
        ExchangeError::Parameter(_) => "invalid_request",
        ExchangeError::GrantType => "unsupported_grant_type",
        ExchangeError::Audience => "invalid_target",
        ExchangeError::Code => "invalid_grant",
        ExchangeError::NotAccepted | ExchangeError::NoConsent { .. } | ExchangeError::NoTeam { .. } => {
            "access_denied"
        }
        ExchangeError::KeysUnavailable
        | ExchangeError::TooManyProofs(_)
        | ExchangeError::TooManyQuestions => "temporarily_unavailable",
    }
}

fn reason_of_sign_in(error: &SignInError) -> Reason {
    match error {
        SignInError::NoSession => Reason::SignInNeeded,
        SignInError::SessionTooOld => Reason::SignInTooOld,
        SignInError::OtherSite => Reason::OtherSite,
        SignInError::RevealedByPost => Reason::PostNeeded,
        SignInError::NoProvider(_) => Reason::ProviderNotFound,
        SignInError::ProviderDown(_) | SignInError::NoWeb => Reason::ProviderUnavailable,
        SignInError::ProviderRefused { .. }
        | SignInError::BadToken { .. }
        | SignInError::Claims(_)
        | SignInError::NoRule(_)
        | SignInError::NoInvitation => Reason::SignInRefused,
        SignInError::LoginTaken(_) | SignInError::LoginOfServerAdmin(_) | SignInError::LinkedWithOther(_) => {
            Reason::AccountConflict
        }
        SignInError::NoSuchSession => Reason::SessionNotFound,
        SignInError::SessionExceedsToken | SignInError::SessionsOfSeveralOrgs(_) => Reason::RoleTooLow,
        // Only the operator's commands can get some of these.
        SignInError::NotSecure
        | SignInError::NotBegun
        | SignInError::OtherAnswer
        | SignInError::ProviderExists(_)
        | SignInError::BadAddress(_)
        | SignInError::TooManyRules { .. }
        | SignInError::BadText { .. }
        | SignInError::RuleOfNoOrg(_)
        | SignInError::NotLinked { .. }
        | SignInError::NotACliLogin { .. }
        | SignInError::BadField(_) => Reason::InvalidRequest,
    }
}

fn reason_of_stack(error: &StackError) -> Reason {
    match error {
        StackError::NotFound(_) | StackError::NotDeleted { .. } => Reason::StackNotFound,
        StackError::NoConfig(_) => Reason::StackConfigNotFound,
        StackError::NoProject { .. } => Reason::ProjectNotFound,
        StackError::NoVersion { .. } | StackError::NeverUpdated(_) => Reason::StackVersionNotFound,
        StackError::Pruned { .. } => Reason::StackVersionErased,
        StackError::NotIndexed { .. } => Reason::StackVersionNotIndexed,
        StackError::NoResource { .. } => Reason::ResourceNotFound,
        StackError::NoSecret { .. } => Reason::SecretNotFound,
        StackError::SecretElsewhere(_) => Reason::SecretElsewhere,
        StackError::NoTag { .. } => Reason::TagNotFound,
        // The CLI looks for "already exists" in the text.
        StackError::Exists(_) => Reason::StackExists,
        StackError::HasResources => Reason::StackHasResources,
        StackError::Protected(_) | StackError::VersionOfProtected(_) => Reason::StackProtected,
        // Only the operator's commands can get the first two.
        StackError::NoneDeleted(_) | StackError::SeveralDeleted { .. } | StackError::TagExists { .. } => {
            Reason::InvalidRequest
        }
        StackError::TooManyTags { .. }
        | StackError::TagTooLong { .. }
        | StackError::ProviderTooLong { .. } => Reason::LimitExceeded,
        StackError::PlaintextSecrets => Reason::PlaintextSecrets,
    }
}

fn reason_of_update(error: &UpdateError) -> Reason {
    match error {
        UpdateError::NotFound { .. } => Reason::UpdateNotFound,
        UpdateError::Held(_) => Reason::StackLocked,
        UpdateError::OnHold(_) => Reason::StackOnHold,
        UpdateError::NotYours { .. } => Reason::UpdateOfOtherUser,
        UpdateError::NotNow(_) => Reason::UpdateNotReady,
        UpdateError::NothingToCancel { .. } => Reason::NothingToCancel,
        // Clients stop an update at a 403. No other error may use 403 for an update's token.
        UpdateError::Fenced(Fenced::TokenNotValid | Fenced::TokenNotIssued) => Reason::UpdateTokenInvalid,
        UpdateError::Fenced(_) => Reason::UpdateOver,
        UpdateError::NoFit(_) => Reason::DeltaMismatch,
        UpdateError::OtherSaves { .. }
        | UpdateError::NoneHolds(_)
        | UpdateError::OtherHolds { .. }
        | UpdateError::NoSlot { .. } => Reason::InvalidRequest,
    }
}

fn reason_of_state(error: &StateError) -> Reason {
    match error {
        StateError::NotFound(_) => Reason::StateNotFound,
        // Clients do not take 410 for an empty state, and do not retry it.
        StateError::Deleted(_) | StateError::WriteOfDeleted { .. } | StateError::LockOfDeleted(_) => {
            Reason::StateDeleted
        }
        StateError::NoVersion { .. } => Reason::StateVersionNotFound,
        StateError::Exists(_) | StateError::NameLeadsTo { .. } => Reason::StateExists,
        StateError::Forbidden(_) | StateError::NoSuchAddress(_) => Reason::StateForbidden,
        StateError::Encrypted => Reason::StateEncrypted,
        StateError::ResourcesUnknown { .. } => Reason::ResourcesUnknown,
        StateError::NoResource { .. } => Reason::ResourceNotFound,
        StateError::Locked(_) => Reason::StateLocked,
        StateError::NotHolder(_) => Reason::StateLockLost,
        StateError::LockNotAllowed(_) => Reason::RoleTooLow,
        StateError::WriteRefused { .. } => Reason::StateWriteRefused,
        StateError::Protected(_) | StateError::WriteOfProtected { .. } => Reason::StateProtected,
        StateError::HasResources(_) => Reason::StateHasResources,
        StateError::NearLimit { .. } => Reason::StateNearLimit,
        StateError::SerialAtEnd | StateError::OtherOrganization | StateError::OutputName => {
            Reason::InvalidRequest
        }
        StateError::TooManySchemas { .. } => Reason::LimitExceeded,
        StateError::NoDependency(_) => Reason::DependencyNotFound,
        StateError::InputTaken { .. } | StateError::TooManyDependencies { .. } | StateError::Cycle(_) => {
            Reason::DependencyRefused
        }
        StateError::NoInputName { .. } => Reason::InvalidName,
        StateError::LabelPolicyMoved { .. } => Reason::LabelPolicyChanged,
        StateError::LabelPolicyViolated { .. } => Reason::LabelPolicyViolated,
    }
}

fn reason_of_environment(error: &EnvironmentError) -> Reason {
    match error {
        EnvironmentError::NotFound(_) | EnvironmentError::NoneDeleted(_) => Reason::EnvironmentNotFound,
        EnvironmentError::NoRevision { .. } => Reason::RevisionNotFound,
        EnvironmentError::NoTag { .. } => Reason::TagNotFound,
        EnvironmentError::Exists(_) | EnvironmentError::TagExists(_) => Reason::EnvironmentExists,
        EnvironmentError::Moved(_) => Reason::EnvironmentChanged,
        EnvironmentError::Protected(_) => Reason::EnvironmentProtected,
        EnvironmentError::Definition(_) => Reason::EnvironmentInvalid,
        EnvironmentError::NoSession(_) | EnvironmentError::OpenedIsGone(_) => Reason::SessionNotFound,
        EnvironmentError::TooManyRevisions { .. }
        | EnvironmentError::ReasonTooLong { .. }
        | EnvironmentError::TooManyTags { .. }
        | EnvironmentError::TagTooLong { .. }
        | EnvironmentError::TooManyRounds { .. }
        | EnvironmentError::TooManyImports { .. }
        | EnvironmentError::TooManyStacks { .. }
        | EnvironmentError::OutputsTooLong { .. } => Reason::LimitExceeded,
        EnvironmentError::AllRetracted { .. }
        | EnvironmentError::SecretInPlace
        | EnvironmentError::HistoryOrRevision
        | EnvironmentError::RetractCurrent
        | EnvironmentError::ReplacesItself
        | EnvironmentError::ReplacementRetracted(_)
        | EnvironmentError::NumberIsNotATag
        | EnvironmentError::NotARevision
        | EnvironmentError::Lasts
        | EnvironmentError::NoValue
        | EnvironmentError::ForeignOutput
        | EnvironmentError::SecretNotText => Reason::InvalidRequest,
    }
}

/// The text of an error for the client's user. Details for the operator are in the log only.
fn text(error: &Error) -> String {
    match error {
        // The CLI recognizes exactly this text, and then shows its own explanation.
        Error::Stack(StackError::HasResources) => "Stack still contains resources.".to_owned(),
        Error::Port(error) if error.has_no_room() => {
            "the disk of the server is full. What was acknowledged is kept, and this was not. Run the command again once the \
             operator of the server has freed space"
                .to_owned()
        }
        Error::Port(_) => "the store did not answer; nothing is lost, try again".to_owned(),
        Error::MasterKey(_) => {
            "the server's master key is disabled, deleted or not accessible to the server, so it cannot encrypt or decrypt \
             secrets, and a server that was started since cannot begin updates. Nothing is lost: reads, and running updates \
             without secrets, continue. The operator has to repair the key: `statewright doctor` says how"
                .to_owned()
        }
        Error::Broken(_) | Error::TooNew(_) => {
            "stored data cannot be used: the server's log says why, under this request's ID".to_owned()
        }
        Error::IndexDamaged(_) => "the index of this version's resources is damaged: the operator of the server makes it \
                                   again with `statewright stack index`"
            .to_owned(),
        Error::Internal(_) => {
            "the server has a bug: its log describes it, under this request's ID".to_owned()
        }
        error => error.to_string(),
    }
}

fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_password_check_is_retried_and_not_logged_as_a_failure() {
        let response = Failure::from(AccessError::TooManyPasswords).into_response();
        assert_eq!(
            (response.status().as_u16(), &response.headers()[RETRY_AFTER]),
            (429, &HeaderValue::from(1))
        );
        assert!(response.extensions().get::<OperatorNote>().is_none());
    }
}
