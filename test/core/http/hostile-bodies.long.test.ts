// Each hostile body to each route of the server: every answer is a documented one, and no body keeps the server from others.
import t from 'tap'
import { startApiServer } from '../../fuzz/helpers/api-server.ts'
import { HOSTILE_BODIES } from '../../fuzz/helpers/hostile-bodies.ts'
import { partOfCommit, playsWholeTables } from '../../../setup/test/share-of-commit.ts'

const PARTS = 4

t.test('no route has a fault or holds the server up, whatever its body is', { timeout: 900_000 }, async (t) => {
  const server = await startApiServer(work => t.teardown(work))
  t.ok(server.operations.length > 50, `${server.operations.length} routes`)
  // Each route gets a share of the table, which is another one for another commit. All of it: setup/test/share-of-commit.
  const part = partOfCommit(PARTS)
  let count = 0
  for (const [at, operation] of server.operations.entries()) {
    for (const { name, headers, body } of HOSTILE_BODIES.filter((_one, index) => playsWholeTables || (index + at) % PARTS === part)) {
      const path = operation.path.replaceAll(/\{\w+\}/g, 'none')
      const fault = await server.fault(operation, { method: operation.method, path, headers: { ...headers }, body: body() })
      if (fault !== undefined) t.fail(`${operation.method} ${path}, ${name}: ${fault}`)
      count++
    }
  }
  t.comment(`${count} requests`)
  t.equal((await server.call({ method: 'GET', path: '/health' })).status, 200)
})
