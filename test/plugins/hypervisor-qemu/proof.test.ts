// What was found out by a trial is remembered: a success on disk, a failure for a while.
import t from 'tap'
import type { ProbeCache } from '../../../core/library/vmm/probe-cache.ts'
import { createProof, type Proof } from '../../../plugins/hypervisor-qemu/proof.ts'

interface Findings { readonly problem?: string }

function memoryCache (): ProbeCache {
  const known = new Map<string, string | undefined>()
  return {
    async recall (key, probe) {
      if (!known.has(key)) known.set(key, await probe())
      return known.get(key)
    }
  }
}

function proofOf (cache: ProbeCache, attempt: (signal: AbortSignal) => Promise<Findings>): Proof<Findings> {
  return createProof<Findings>({ key: async () => 'one', cache, attempt, success: {}, isSuccess: ({ problem }) => problem === undefined })
}

t.test('a success is found once, and known to the next server without a trial', async (t) => {
  const cache = memoryCache()
  let trials = 0
  const succeed = async (): Promise<Findings> => { trials++; return {} }
  const proof = proofOf(cache, succeed)
  t.equal(await proof.known(), undefined)
  t.equal(trials, 0, 'asking what is known tries nothing')
  t.same(await Promise.all([proof.findings(), proof.findings()]), [{}, {}])
  t.same(await proof.known(), {})
  const next = proofOf(cache, succeed)
  t.same(await next.known(), {})
  t.same(await next.findings(), {})
  t.equal(trials, 1)
})

t.test('a failure is known for a while, and not on disk', async (t) => {
  const cache = memoryCache()
  const proof = proofOf(cache, async () => ({ problem: 'it fell' }))
  t.same(await proof.findings(), { problem: 'it fell' })
  t.same(await proof.known(), { problem: 'it fell' })
  t.equal(await proofOf(cache, async () => ({})).known(), undefined)
})

t.test('a trial that says nothing is no answer, and the end of the server ends one', async (t) => {
  const cache = memoryCache()
  let isFull = true
  const proof = proofOf(cache, async (signal) => {
    if (isFull) throw new Error('the disk is full')
    await new Promise((resolve, reject) => { signal.addEventListener('abort', () => { reject(signal.reason) }) })
    return {}
  })
  await t.rejects(proof.findings(), { message: 'the disk is full' })
  isFull = false
  const asked = t.rejects(proof.findings(), { message: 'the server is stopping' })
  await new Promise((resolve) => setImmediate(resolve))
  await proof.close()
  await asked
  await t.rejects(proof.findings(), { message: 'the server is stopping' })
})
