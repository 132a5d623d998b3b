// The thread of posting.ts.
import { parentPort, workerData } from 'node:worker_threads'
import { createExporter } from './exporter.ts'
import type { Posted } from './posting.ts'

if (parentPort === null) throw new Error('this is a thread of the plugin tracing, and no program')
const port = parentPort
const exporter = createExporter(workerData)
port.on('message', (batch) => {
  exporter.post(batch, (reason) => { port.postMessage({ reason } satisfies Posted) })
})
