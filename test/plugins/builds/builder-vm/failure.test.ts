// What people are told when a build fails.
import t from 'tap'
import { createBuildLog } from '../../../../plugins/builds/builder-vm/build-log.ts'
import { describeFailure, type Circumstances } from '../../../../plugins/builds/builder-vm/failure.ts'

const usual: Circumstances = { exitCode: 1, last: [], memoryBytes: 512 * 2 ** 20, oomKills: 0, isIsolated: false, readsRegistry: true }

t.test('buildah\'s own word comes first, and the last lines of the step follow', async (t) => {
  const last = ['STEP 2/2: RUN make', 'cc: error', 'Error: building at STEP "RUN make": exit status 2']
  t.equal(describeFailure('the build', { ...usual, last }), 'the build failed: building at STEP "RUN make": exit status 2\nLast lines:\nSTEP 2/2: RUN make\ncc: error')
})

t.test('without a word of buildah\'s its exit code is told', async (t) => {
  t.equal(describeFailure('the build', { ...usual, exitCode: 137 }), 'the build failed: buildah ended with 137')
})

t.test('a build that ran out of memory is told how much it had, and what to raise', async (t) => {
  t.match(describeFailure('the build', { ...usual, oomKills: 1 }), /the build had 512 MB\. Raise memory_mb\./)
})

t.test('a full disk is named', async (t) => {
  t.match(describeFailure('the build', { ...usual, last: ['cp: write error: No space left on device'] }), /The disk of the build is full/)
})

t.test('when a base image cannot be had, the reason that is likely is named', async (t) => {
  const fetching = 'Error: creating build container: initializing source docker://docker.io/library/alpine:latest: pinging container registry'
  t.match(describeFailure('the build', { ...usual, last: [fetching], isIsolated: true }), /network_mode isolated/)
  t.match(describeFailure('the build', { ...usual, last: [`${fetching}: denied`], readsRegistry: false }), /may not read images/)
  t.notMatch(describeFailure('the build', { ...usual, last: [fetching] }), /network_mode|may not read/)
})

t.test('the lines that are kept begin with the last step, and are no more than twenty', async (t) => {
  const taken: string[] = []
  const log = createBuildLog([Buffer.from('hunter22')], (line) => taken.push(line))
  log.push(Buffer.from('STEP 1/2: FROM x\npulling\n[1/2] STEP 2/2: RUN y\nmy hunter'))
  log.push(Buffer.from('22\nError: no'))
  log.end()
  t.same(log.last(), ['[1/2] STEP 2/2: RUN y', 'my ***', 'Error: no'])
  t.same(taken, ['STEP 1/2: FROM x', 'pulling', '[1/2] STEP 2/2: RUN y', 'my ***', 'Error: no'])
  log.push(Buffer.from(Array.from({ length: 50 }, (_, index) => `line ${index}\n`).join('')))
  t.equal(log.last().length, 20)
  t.equal(log.last().at(-1), 'line 49')
})
