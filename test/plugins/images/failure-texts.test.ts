import t from 'tap'
import { HostCommandFailed } from '../../../core/process/errors.ts'
import { asAnswer, explain } from '../../../plugins/images/failures.ts'

function failed (stderr: string, reason: 'exit' | 'timeout' = 'exit'): HostCommandFailed {
  return new HostCommandFailed({ command: 'skopeo', reason, exitCode: 1, signal: undefined, stderr }, 'exited with 1')
}

t.test('what the tools say becomes a reason and a sentence with their last line', async (t) => {
  const cases: ReadonlyArray<readonly [string, string]> = [
    ['time="x" level=fatal msg="Error parsing manifest for image: reading manifest 9 in h/x: manifest unknown"', 'not-found'],
    ['time="x" level=fatal msg="initializing source docker://h/x: reading manifest latest in h/x: name unknown: repository name not known to registry"', 'not-found'],
    ['level=fatal msg="unauthorized: authentication required"', 'login-refused'],
    ['level=fatal msg="requested access to the resource is denied"', 'login-refused'],
    ['level=fatal msg="pinging container registry h: invalid status code from registry 403 (Forbidden)"', 'login-refused'],
    ['level=fatal msg="toomanyrequests: You have reached your pull rate limit"', 'rate-limited'],
    ['level=fatal msg="pinging container registry h: Get \\"https://h/v2/\\": dial tcp: lookup h: no such host"', 'unreachable'],
    ['level=fatal msg="Get: http: server gave HTTP response to HTTPS client"', 'plain-http'],
    ['level=fatal msg="Get: x509: certificate signed by unknown authority"', 'certificate'],
    ['level=fatal msg="writing blob: Digest did not match, expected sha256:a, got sha256:b"', 'corrupt'],
    ['level=fatal msg="writing blob: write /x: no space left on device"', 'disk-full'],
    ['something new', 'tool']
  ]
  for (const [stderr, reason] of cases) t.equal(explain(failed(stderr), 'h/x').reason, reason, stderr)
  t.equal(explain(failed('a warning\ntime="x" level=fatal msg="it \\"broke\\" here"'), 'h/x').message, 'h/x could not be pulled (it "broke" here)')
  t.equal(explain(failed('', 'timeout'), 'h/x').message, 'the pull of h/x took too long')
  t.ok(explain(failed('y'.repeat(5000)), 'h/x').message.length < 400)
})

t.test('a fault that nobody foresaw is not shown to users, a full disk is', async (t) => {
  t.equal(explain(new Error('secret internals'), 'h/x').message, 'h/x could not be pulled')
  t.equal(explain(Object.assign(new Error('ENOSPC: no space left'), { code: 'ENOSPC' }), 'h/x').reason, 'disk-full')
})

t.test('only some failures are answers of their own', async (t) => {
  t.match(asAnswer(explain(failed('manifest unknown'), 'h/x'), 'h/x'), { code: 'not_found', statusCode: 404 })
  t.match(asAnswer(explain(failed('toomanyrequests'), 'h/x'), 'h/x'), { code: 'rate_limited', statusCode: 429 })
  t.equal(asAnswer(explain(failed('unauthorized'), 'h/x'), 'h/x'), undefined)
})
