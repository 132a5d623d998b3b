// Programs that find the egress authority in places of their own: Java in a key store, Chromium in a policy, cargo and go by variables.
import { createHash } from 'node:crypto'
import type { Test } from 'tap'
import { ORIGINS, type Seen } from '../origins/contract.ts'
import { checkPlacement, succeed, watched, type Stage } from '../stage.ts'

const PACKAGES = `https://${ORIGINS.packages}`

/** Runs a script that fetches, and asserts what it printed and that its requests were as the rules say; the requests. */
async function fetches (t: Test, stage: Stage, script: string, printed: string): Promise<readonly Seen[]> {
  const { result, seen } = await watched(stage, async () => await succeed(t, stage.guest, script))
  t.match(result, printed)
  checkPlacement(t, seen, stage.secrets)
  return seen
}

export async function go (t: Test, stage: Stage): Promise<void> {
  const files = `/go/${ORIGINS.packages}/parcel/@v/v1.2.3`
  // The public database of checksums does not know this module.
  const seen = await fetches(t, stage, `set -e; mkdir /tmp/go; cd /tmp/go; export GOPATH=/tmp/go GOCACHE=/tmp/go/cache GOFLAGS=-mod=mod GOPROXY=${PACKAGES}/go GONOSUMDB='*'
/usr/lib/go-1.19/bin/go mod download ${ORIGINS.packages}/parcel@v1.2.3; cat pkg/mod/${ORIGINS.packages}/parcel@v1.2.3/parcel.go`, 'a parcel of go')
  t.same(seen.map(({ url }) => url), ['info', 'mod', 'zip'].map((end) => `${files}.${end}`))
}

/** This version of cargo has registries without git only as what is still being tried out. */
export async function cargo (t: Test, stage: Stage): Promise<void> {
  const seen = await fetches(t, stage, `set -e; mkdir -p /tmp/cargo/src; cd /tmp/cargo; : > src/lib.rs
printf '[package]\\nname = "guest"\\nversion = "0.1.0"\\n[dependencies]\\nparcel = { version = "1.2.3", registry = "ours" }\\n' > Cargo.toml
export CARGO_HOME=/tmp/cargo/home CARGO_REGISTRIES_OURS_INDEX=sparse+${PACKAGES}/cargo/ RUSTC_BOOTSTRAP=1
cargo -Z sparse-registry vendor -q > /dev/null; cat vendor/parcel/src/lib.rs`, 'a parcel of cargo')
  t.same(seen.map(({ url }) => url), ['/cargo/config.json', '/cargo/pa/rc/parcel', '/crates/parcel/1.2.3'])
}

/** Starts quickly rather than runs quickly. */
const JAVA = '/usr/lib/jvm/java-17-openjdk-amd64/bin/java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp /clients'

export async function java (t: Test, stage: Stage): Promise<void> {
  const program = `${JAVA} Get https://${ORIGINS.api}/echo/java "Bearer $API_KEY"`
  const seen = await fetches(t, stage, program, '"url":"/echo/java"')
  t.match(seen, [{ origin: 'api', secure: true, method: 'GET', url: '/echo/java' }])
  const { exitCode, stderr } = await stage.guest.run(`unset JAVA_TOOL_OPTIONS; ${program}`)
  t.equal(exitCode, 1, 'it is this store that Java goes by')
  t.match(stderr, /SSL\w*Exception/)
  const files = (await succeed(t, stage.guest, 'set -e; for each in /etc/ssl/berth-ca-bundle.jks /etc/ssl/certs/berth-ca-bundle.crt; do base64 -w 0 $each; echo; done')).split('\n')
  const [store = Buffer.alloc(0), bundle = ''] = files.map((text) => Buffer.from(text, 'base64'))
  t.equal(store.readUInt32BE(8), String(bundle).match(/^-----BEGIN CERTIFICATE-----$/gm)?.length, 'it has all that the bundle has')
  t.equal(store.subarray(-20).toString('hex'), createHash('sha1').update(Buffer.from('\0c\0h\0a\0n\0g\0e\0i\0t')).update('Mighty Aphrodite').update(store.subarray(0, -20)).digest('hex'), 'and opens with the usual password')
}

/** As few processes as it can do with. The time is many times what it takes, for a host under load. */
const CHROMIUM = 'timeout 900 /usr/lib/chromium/chromium --headless --no-sandbox --no-zygote --in-process-gpu --disable-gpu --disable-dev-shm-usage --no-first-run --disable-background-networking --disable-component-update --disable-extensions --dump-dom'

export async function browser (t: Test, stage: Stage): Promise<void> {
  const seen = await fetches(t, stage, `${CHROMIUM} https://${ORIGINS.api}/echo/chromium 2> /tmp/chromium.log || { code=$?; cat /tmp/chromium.log >&2; exit $code; }`, '"url":"/echo/chromium"')
  t.ok(seen.some(({ origin, secure, url }) => origin === 'api' && secure && url === '/echo/chromium'))
}
