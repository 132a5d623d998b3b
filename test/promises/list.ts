// What the READMEs say always holds, and what they say is there after a server has died: each line by its beginning, with the tests that hold it.

export interface Held {
  /** how the line begins; of a table, its first cells */
  readonly line: string
  /** by file, the names of tests as they stand in the source */
  readonly tests: Readonly<Record<string, readonly string[]>>
}

const PROXY = 'test/proxy'
const INSTANCES = 'test/plugins/instances'
const COMPRESSION = `${INSTANCES}/compression-crashes.long.test.ts`
const STANDBY = `${INSTANCES}/standby-crashes.long.test.ts`
const SHARED = 'test/plugins/instances/private-memory-crashes.long.test.ts'
const HOT = `${INSTANCES}/hot-standby-crashes.long.test.ts`
const COPIES = `${INSTANCES}/copies-crashes.long.test.ts`
const RESTART = `${INSTANCES}/restart.test.ts`
const EXPIRY = `${INSTANCES}/expiry.test.ts`
const ATTACHMENTS = 'test/plugins/volumes/attachments.long.test.ts'
const VOLUMES = 'test/plugins/volumes/crashes.long.test.ts'
const SNAPSHOTS = 'test/plugins/snapshots/crashes.long.test.ts'
const BUILDS = 'test/plugins/builds/killed.long.test.ts'
const BUILDERS = 'test/plugins/builds/builders.test.ts'
const PORTS = 'test/plugins/ports/ports.test.ts'

/** for each README, in the order of its lines */
export const PROMISES: Readonly<Record<string, readonly Held[]>> = {
  'proxy/README.md': [
    { line: 'No policy, no way out', tests: { [`${PROXY}/lifecycle.test.ts`]: ['without a policy nothing gets out, and health says why'], [`${PROXY}/addresses.test.ts`]: ['A24: a source without a policy is closed before it says a word, and there is a line about it'] } },
    { line: 'The name of the TLS handshake', tests: { [`${PROXY}/binding.test.ts`]: ['A1 and A2: a Host that is not the name of the TLS handshake is answered 421, nothing is dialled and no secret leaves', 'A3: on HTTP/2 another :authority, or one that differs from host, ends that stream alone', 'A7: an origin whose certificate is self-signed, expired, of another name or of an unknown root gets no byte of the request'], [`${PROXY}/config.test.ts`]: ['A12: one function reads every host name, and refuses what could be read in two ways'] } },
    { line: 'Only addresses that the proxy resolved and vetted', tests: { [`${PROXY}/addresses.test.ts`]: ['A14 and A15: a host that resolves there is answered 403, and nothing is dialled', 'A18: one private address among public ones refuses the host', 'A19: a name that changes its address between check and connection leads to the address that was checked', 'A17 and A22: metadata services stay out of reach also where their range is allowed, and other private ranges stay closed'] } },
    { line: 'Nothing is put into plain HTTP', tests: { [`${PROXY}/credentials.test.ts`]: ['A34: nothing is ever put into a request over plain HTTP', 'A35: whatever the guest calls the header, exactly one arrives, and it is ours'] } },
    { line: 'What an origin sends behind its answer', tests: { [`${PROXY}/origin-connections.long.test.ts`]: ['A49: what an origin sends behind its answer, or before it was asked, is never the answer to a later request', 'A49: an answer that could be read in two ways is a 502, and its connection is not used again'], [`${PROXY}/origin-connection.test.ts`]: ['what an origin says before it was asked is no answer: the connection that was offered HTTP/2 ends by it'] } },
    { line: 'A connection to an origin is known from its dial to its close', tests: { [`${PROXY}/pressure.test.ts`]: ['A59: an origin over HTTP/2 that says farewell behind each answer, and never closes, leaves no descriptor behind'], [`${PROXY}/websocket.test.ts`]: ['A59: an origin that reads nothing of a WebSocket has no connection for long once its guest has closed'], [`${PROXY}/revocation.test.ts`]: ['a revision that removes a VM is acknowledged when its connections to origins have ended, too, also those that wait for an origin to read'], [`${PROXY}/limits.test.ts`]: ['A58: what guests give up while its host is dialled is dialled for no more, in either protocol'] } },
    { line: 'VMs are divided between worker processes', tests: { [`${PROXY}/workers.long.test.ts`]: ['a worker that ends takes the connections of its own VMs with it; others keep theirs, and new ones wait for its successor'], [`${PROXY}/workers-killed.long.test.ts`]: ['while one worker is killed each second, VMs of others lose no request, its own fail for a moment, and nothing goes out without the policy'] } },
    { line: 'A policy is acknowledged when it is in force in every worker', tests: { [`${PROXY}/workers.long.test.ts`]: ['a policy is acknowledged when it is in force in every worker: one that hangs is ended for it', 'workers end with their parent, whatever ends it'] } },
    { line: 'A VM whose traffic keeps ending workers', tests: { [`${PROXY}/workers.long.test.ts`]: ['a VM whose traffic keeps ending its worker is cut off until it starts anew, and says so; its neighbour is served'] } },
    { line: 'A VM pushes no entries of another one out', tests: { [`${PROXY}/audit.test.ts`]: ['a VM with very many requests pushes out nothing but its own, and all of it stays within its bounds', 'where VMs have more than there is room for together, those that have most give up theirs'] } },
    { line: 'A difference (`PATCH /policy`) is enforced only', tests: { [`${PROXY}/changes.test.ts`]: ['a difference to something else than what is enforced, or with a fault, is refused, and nothing has changed', 'a worker that has ended comes back with all differences, and a VM that has begun a new epoch loses its connections'] } },
    { line: 'A revision that takes a VM away', tests: { [`${PROXY}/revocation.test.ts`]: ['a revision that removes VMs is in force for all of them when it is acknowledged, whatever state their requests are in', 'a revision that removes a VM is acknowledged when its connections to origins have ended, too, also those that wait for an origin to read'] } },
    { line: 'What Node would throw for is checked before it is written', tests: { [`${PROXY}/faults.test.ts`]: ['an answer of an HTTP/1.1 origin that Node would throw for comes out right or is a 502', 'trailers with a single-value field come out with one value, or the answer is cut off', 'an answer of an HTTP/2 origin that Node would throw for comes out right or is a 502', 'a guest\'s trailers with a single-value field, and its resets, end its own request'], [`${PROXY}/http1.test.ts`]: ['a guest\'s own Authorization does not pass behind a body'] } },
    { line: 'Whatever calls back for a request runs inside of its exchange', tests: { [`${PROXY}/faults.test.ts`]: ['an answer of an HTTP/1.1 origin that Node would throw for comes out right or is a 502'], [`${PROXY}/hostile-answers.long.test.ts`]: ['no answer of an HTTP/1.1 origin ends the proxy, nor holds up another VM, whatever its guest speaks'] } },
    { line: 'A request over HTTP/2 is sent a second time only when', tests: { [`${PROXY}/unprocessed.long.test.ts`]: ['a request that its origin has not processed is sent again, with its whole body', 'what may have been processed, was refused before, or is too large to be kept is not sent again', 'an answer that has begun and is refused then is not asked for again'] } },
    { line: 'Whoever ends a request ends both sides of it', tests: { [`${PROXY}/streams.test.ts`]: ['P9: an abort on either side ends the other'], [`${PROXY}/faults.test.ts`]: ['a guest\'s trailers with a single-value field, and its resets, end its own request'], [`${PROXY}/origin-connections.long.test.ts`]: ['an origin that answers early gets the whole body all the same, and its connection is not used again: the body could be taken for the next request'] } },
    { line: 'The policy is read in the turn of the event loop', tests: { [`${PROXY}/credentials.test.ts`]: ['A46: each of a hundred requests carries the old or the new value whole, and none the old one after the answer to the change', 'A46: a request that waits for its connection while the value changes carries the new one'] } },
    { line: 'A secret is in no log', tests: { [`${PROXY}/credentials.test.ts`]: ['A47: the secret is in no file, no log, no figure, no answer and no command line of the proxy', 'A45: a secret that an origin sends back in a header, a status line or a trailer reaches the guest as the mock, in each form that is known'], [`${PROXY}/echoes.test.ts`]: ['A45: of two credentials of which one begins with the other, neither comes back, not in part, whatever their order', 'A45: a secret is found however an origin percent-encodes it, and the rest of the text stays as it was', 'A45: a header whose name holds a secret does not reach the guest, in whatever case'] } },
    { line: 'Everything is per VM and epoch', tests: { [`${PROXY}/lifecycle.test.ts`]: ['A29 and A30: with another epoch or another VM on its address, everything of the old one ends: connections, pools, tickets'] } },
    { line: 'The CA\'s key is made once', tests: { [`${PROXY}/credentials.test.ts`]: ['A48: a key of the authority that others could have read, or that is not the certificate\'s, stops the start; the key is made with mode 0600'] } }
  ],
  'plugins/volumes/README.md': [
    { line: 'row `creating`, which claims the id', tests: { [VOLUMES]: ['${name} that is cut off anywhere leaves a whole volume or none'] } },
    { line: 'row `ready`', tests: { [VOLUMES]: ['${name} that is cut off anywhere leaves a whole volume or none'] } },
    { line: 'row `deleting`', tests: { [VOLUMES]: ['a delete that is cut off is finished, or never began'] } }
  ],
  'plugins/builds/README.md': [
    { line: 'form; source', tests: { [BUILDS]: ['a server that is killed while it takes a build leaves all of it, or nothing'] } },
    { line: 'row `queued`', tests: { [BUILDS]: ['a server that is killed while it takes a build leaves all of it, or nothing'] } },
    { line: 'folder moved; answer', tests: { [BUILDS]: ['a server that is killed while it takes a build leaves all of it, or nothing', 'kill -9 of the server in each state of a build'] } },
    { line: 'row `building`, `pushing`', tests: { [BUILDS]: ['kill -9 of the server in each state of a build'] } },
    { line: 'image pushed, noted in the row', tests: { [BUILDS]: ['kill -9 of the server in each state of a build'] } },
    { line: 'row `ready`, `failed`, `cancelled`', tests: { [BUILDS]: ['kill -9 of the server in each state of a build'] } },
    { line: 'builder `creating`, `deleting`', tests: { [BUILDERS]: ['what an earlier server was doing with builders is finished'] } },
    { line: 'builder `pruning`', tests: { [BUILDERS]: ['what an earlier server was doing with builders is finished'] } }
  ],
  'plugins/snapshots/README.md': [
    { line: 'row `creating`, which claims the name', tests: { [SNAPSHOTS]: ['${name}, cut off anywhere'] } },
    { line: 'row `ready`', tests: { [SNAPSHOTS]: ['${name}, cut off anywhere'] } },
    { line: 'compressed file written', tests: { [SNAPSHOTS]: ['${name}, cut off anywhere'] } },
    { line: 'row `compressed`', tests: { [SNAPSHOTS]: ['${name}, cut off anywhere'] } },
    { line: 'row `deleting`', tests: { [SNAPSHOTS]: ['${name}, cut off anywhere'] } }
  ],
  'plugins/instances/README.md': [
    { line: 'before the row says `deleting`', tests: { [EXPIRY]: ['the server that starts next deletes what has expired meanwhile, and keeps what has not'] } },
    { line: 'after that | the removal goes on', tests: { [EXPIRY]: ['a server that dies at any step of a deletion leaves it to the next one'] } },
    { line: 'after a stop by hand was stored', tests: { [RESTART]: ['a server that dies at any step of a stop by hand leaves its end to the next one'] } },
    { line: 'while the VM runs, which ends meanwhile', tests: { [RESTART]: ['a server that starts later starts what ended meanwhile, and what the one before took along'] } },
    { line: 'in the backoff', tests: { [RESTART]: ['a server that dies in the backoff leaves the attempt to the next one, and it comes when it was to come'] } },
    { line: 'in an attempt, before the VM is stored', tests: { [RESTART]: ['a server that dies at "${step}" of an attempt leaves it to the next one'] } },
    { line: 'attached in the database', tests: { [ATTACHMENTS]: ['an attachment that no instance knows is given back at the start'] } },
    { line: 'row with `attaching`; disk; mount', tests: { [ATTACHMENTS]: ['an attachment that was cut off at "${step}" ${isUsed ? \'stays when the guest uses it\' : \'is taken back\'}'] } },
    { line: 'row | finds it attached', tests: { [ATTACHMENTS]: ['an attachment that was cut off at "${step}" ${isUsed ? \'stays when the guest uses it\' : \'is taken back\'}'] } },
    { line: 'in a create, or a fork, after the base was linked', tests: { [SHARED]: ['a server that dies at any step of the work on files of a create from a shared template leaves nothing of it', 'a fork that shares the base of its ${kind} source, and whose server died at any step of its work on files, is gone or whole, and the source stays'] } },
    { line: 'in a standby, before the image is whole', tests: { [SHARED]: ['a standby on a base that was cut off at "${step}" is ${state === \'Running\' ? \'undone\' : \'finished\'}', 'an instance whose server died at any step of the work on files of its standby is as it was or whole'] } },
    { line: 'in a restore, before its taker is noted', tests: { [SHARED]: ['a restore on a base that was cut off at "${step}" leaves it ${state}, and nothing of the memory is lost'] } },
    { line: 'after that | the VM is taken over', tests: { [SHARED]: ['a restore on a base that was cut off at "${step}" leaves it ${state}, and nothing of the memory is lost', 'a restore on a base that was cut off after its VM ran, which has ended since, leaves the instance in standby as before'] } },
    { line: 'before the image is whole', tests: { [STANDBY]: ['a standby that was cut off at "${step}" is ${state === \'Running\' ? \'undone\' : \'finished\'}'] } },
    { line: 'after that | the VMM is killed', tests: { [STANDBY]: ['a standby that was cut off at "${step}" is ${state === \'Running\' ? \'undone\' : \'finished\'}'] } },
    { line: 'in a restore, before the guest ran', tests: { [STANDBY]: ['a restore that was cut off before its VM ran leaves the instance in standby'] } },
    { line: 'from then on, before the row was stored', tests: { [STANDBY]: ['a restore that was cut off ${when}, is finished by the next server, and nothing of the memory is lost', 'a restore that was cut off after its VM ran, which has ended before anybody knew of it, leaves the instance in standby as before', 'the same when nothing was kept of the image makes the instance Stopped'] } },
    { line: 'after the row was stored', tests: { [STANDBY]: ['a restored guest that nobody had woken yet is woken by the next server'] } },
    { line: 'while what was kept is put back', tests: { [`${INSTANCES}/restore-kept.long.test.ts`]: ['a server that dies at any step of a restore, and of putting back what was kept, leaves the instance in standby as before'] } },
    { line: 'in a fork | the fork is removed', tests: { [`${INSTANCES}/network-crashes.long.test.ts`]: ['a fork that was cut off at "${step}" leaves its source alone'] } },
    { line: 'after a standby, and in a hot restore before the VM is noted', tests: { [HOT]: ['a standby that was cut off at "${step}" is ${state === \'Running\' ? \'undone\' : \'finished, without its VM\'}', 'a hot restore that was cut off ${when} loses nothing of the memory, and there is one VM'] } },
    { line: 'from then on, before the row was stored | it is taken over', tests: { [HOT]: ['a guest that nobody had woken yet after a hot restore is woken by the next server', 'a hot restore whose server dies before any of its changes to files${also}: the guest goes on, or its image is whole, or its end is told; it never goes on twice from the same memory'] } },
    { line: 'while it compresses', tests: { [COMPRESSION]: ['a compression that was cut off at "${step}" is finished'] } },
    { line: 'after that | the uncompressed memory goes', tests: { [COMPRESSION]: ['a compression that was cut off at "${step}" is finished'] } },
    { line: 'while it expands', tests: { [COMPRESSION]: ['a restore of a compressed image that was cut off at "${step}" leaves it in standby, and compressed'] } },
    { line: 'later in the restore', tests: { [COMPRESSION]: ['one that was cut off before its VM ran leaves it in standby, and compressed', 'one that was cut off after its VM ran, which has ended before anybody knew of it, leaves it in standby as before', 'one whose guest nobody had woken yet is woken by the next server'] } },
    { line: 'in a capture', tests: { [COPIES]: ['an instance whose capture was cut off at "${step}" goes on'] } },
    { line: 'in a fork of a copy', tests: { [COPIES]: ['a fork of a copy that was cut off at "${step}" is gone', 'a fork of a copy whose server died at any step of its work on files is gone, and the copy and its source stay'] } },
    { line: 'in a restore in place, while the new files are gathered', tests: { [COPIES]: ['an instance in ${before} whose server died at any step of putting it back to a copy of kind ${kind} in ${target} is as it was or as it was to be'] } },
    { line: 'once they are on disk and the folder is named', tests: { [COPIES]: ['an instance in ${before} whose server died at any step of putting it back to a copy of kind ${kind} in ${target} is as it was or as it was to be'] } },
    { line: 'after its VM was started', tests: { [COPIES]: ['an instance that was put back and whose server died at "${step}" is ${state}'] } }
  ],
  'plugins/ports/README.md': [
    { line: 'before the rows are stored', tests: { [PORTS]: ['a server that dies at "${step}" of ${verb} of a port of an instance is followed by one that ${isThere ? \'holds and opens\' : \'has nothing of\'} it'] } },
    { line: 'after that, before the instance is whole', tests: { [PORTS]: ['a server that dies at "${step}" of a create or delete leaves no port of an instance that is no more'] } },
    { line: 'after a row has gone', tests: { [PORTS]: ['a server that dies at "${step}" of ${verb} of a port of an instance is followed by one that ${isThere ? \'holds and opens\' : \'has nothing of\'} it'] } },
    { line: 'otherwise', tests: { [PORTS]: ['the next server holds the ports again, and says which another program has taken meanwhile until that is gone'] } }
  ]
}
