import t from 'tap'
import { RegistryFailure } from '../../../core/library/oci/failures.ts'
import { HostCommandFailed } from '../../../core/process/errors.ts'
import { explainCopy, explainReading } from '../../../plugins/pushes/failures.ts'

const ends = { origin: 'h/from@sha256:a', target: 'h/to:1' }

function failed (stderr: string, reason: 'exit' | 'timeout' = 'exit'): HostCommandFailed {
  return new HostCommandFailed({ command: 'skopeo', reason, exitCode: 1, signal: undefined, stderr }, 'exited with 1')
}

t.test('what skopeo says is put down to the end that it is about', async (t) => {
  const cases: ReadonlyArray<readonly [string, string, RegExp]> = [
    ['initializing source docker://h/from@sha256:a: reading manifest sha256:a in h/from: manifest unknown', 'not-found', /^h\/from@sha256:a is no longer in its registry/],
    ['writing blob: reading blob sha256:b: unexpected EOF', 'corrupt', /^a part of h\/from@sha256:a/],
    ['writing blob: initiating layer upload to /v2/to/blobs/uploads/ in h: unauthorized: authentication required', 'login-refused', /^the registry of h\/to:1 refused the login/],
    ['writing blob: initiating layer upload to /v2/to/blobs/uploads/ in h: name unknown: The repository does not exist', 'not-found', /^the registry of h\/to:1 has no such repository/],
    ['pinging container registry h: Get: x509: certificate signed by unknown authority', 'certificate', /^the certificate of the registry of h\/to:1 is not trusted; set insecure/],
    ['pinging container registry h: Get: http: server gave HTTP response to HTTPS client', 'plain-http', /set insecure/],
    ['writing manifest: toomanyrequests: slow down', 'rate-limited', /^the registry of h\/to:1 limits/],
    ['something new', 'tool', /^the image could not be pushed to h\/to:1 \(something new\)$/]
  ]
  for (const [stderr, reason, message] of cases) t.match(explainCopy(failed(`time="x" level=fatal msg="${stderr}"`), ends), { reason, message }, stderr)
  t.match(explainCopy(failed('reading blob sha256:b', 'timeout'), ends), { reason: 'timeout', message: /^the push to h\/to:1 took too long/ })
})

t.test('a fault that nobody foresaw is not shown to users, one that was explained already is', async (t) => {
  t.equal(explainReading(new Error('secret internals'), 'h/from').message, 'h/from could not be read')
  t.equal(explainReading(new RegistryFailure('unreachable', 'the built-in registry is not enabled on this server'), 'h/from').message, 'the built-in registry is not enabled on this server')
  t.notMatch(explainCopy(failed('open /data/pushes/tmp-abc123/login-1.json: no such file'), ends).message, /tmp-|data/)
})
