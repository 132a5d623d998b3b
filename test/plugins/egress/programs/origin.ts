// An origin over TLS that answers with the `Authorization` that came.
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'

const [, , address = '', certificate = ''] = process.argv
createServer(JSON.parse(readFileSync(certificate, 'utf8')), (request, response) => {
  // The proxy takes a secret out of headers, and out of no body.
  response.end(request.headers.authorization ?? 'none')
}).listen(443, address, () => { process.stdout.write('ready\n') })
