// Every limit of the agent protocol: those that the protocol fixes, and those that the host sets against a hostile guest.

export const MAX_PAYLOAD_BYTES = 65_536
export const HEADER_BYTES = 12
/** what each stream of a channel may carry before its receiver grants more */
export const INITIAL_CREDIT_BYTES = 262_144
/** more outstanding credit than this is an attempt to overflow a counter */
export const MAX_CREDIT_BYTES = 0x7fff_ffff

/** how long a guest may take to fall asleep when the caller does not say */
export const DEFAULT_SLEEP_MS = 10_000
/** how long a guest may take to wake up */
export const WAKE_MS = 10_000
/** how long a guest may take to mount or unmount a volume: data that was written to it may first have to reach the disk */
export const VOLUME_MS = 40_000
/** how long a guest may take to rehearse a start */
export const REHEARSE_MS = 10_000
/** how long a guest may take to give its disks their driver */
export const BIND_MS = 10_000
/** added to the guest's own limits before a silent guest is given up, since the host may be slow */
export const ANSWER_MARGIN_MS = 20_000

/** garbage tolerated before the answer to a sync: more than any half-sent state of an honest guest */
export const MAX_BYTES_BEFORE_SYNC = 16 * 1024 * 1024
/** frames that carry nothing for anybody (NOP, empty DATA, unknown channels) tolerated in one second */
export const MAX_IDLE_FRAMES_PER_SECOND = 20_000
/** bytes waiting to be read by the guest; only control frames are sent without waiting for it, so more than this means that it does not read */
export const MAX_UNREAD_BYTES = 8 * 1024 * 1024

/** requests that a guest may leave unanswered: some times the 64 channels that it has, since its refusals may be on their way */
export const MAX_UNANSWERED = 256

/** channels of a listener that wait for a connection at a time */
export const WAITING_CONNECTIONS = 4
/** connections of a listener, waiting ones included: the rest of a guest's 64 channels is for other requests */
export const MAX_CONNECTIONS = 32
/** pause before another request to a guest that has no channel left */
export const ACCEPT_RETRY_MS = 1000

/** largest certificate and bundle that a guest may be told to trust */
export const MAX_CERTIFICATE_BYTES = 16 * 1024
export const MAX_BUNDLE_BYTES = 1024 * 1024

export const MAX_FIELDS = 64
export const MAX_TEXT_BYTES = 4096
export const MAX_PATH_BYTES = 4096
/** entries in one `get`; a whole distribution has some 100,000 files */
export const MAX_ENTRIES = 5_000_000
