// Programs that fetch: git, a registry's client, and three package managers.
import type { Test } from 'tap'
import { ORIGINS } from '../origins/contract.ts'
import { valuesOf } from '../origins/host.ts'
import { checkPlacement, succeed, watched, type Stage } from '../stage.ts'

/** What a pushed commit brings, so that its pack is more than the buffer of the client. */
const PUSHED_BYTES = 400_000

export async function git (t: Test, stage: Stage): Promise<void> {
  const { result, seen } = await watched(stage, async () => await succeed(t, stage.guest, `set -e; cd /tmp
export GIT_TERMINAL_PROMPT=0
git clone -q https://${ORIGINS.git}/project.git project
cd project
git log -1 --format=%s
curl -sS https://${ORIGINS.api}/bytes/${PUSHED_BYTES} -o bytes
git add bytes
git -c user.name=Guest -c user.email=guest@good.test commit -q -m 'a commit of the guest'
git -c http.version=HTTP/1.1 -c http.postBuffer=65536 push -q origin HEAD
cd ..
git clone -q https://${ORIGINS.git}/project.git again
git -C again hash-object bytes
git -C project hash-object bytes
git -C again log --format=%s`))
  t.match(result, /^the first commit of the origin\n([0-9a-f]{40})\n\1\na commit of the guest\nthe first commit of the origin\n$/, 'P15: cloned, pushed, and cloned again')
  const push = seen.filter(({ origin, url, bodyBytes }) => origin === 'git' && url === '/project.git/git-receive-pack' && bodyBytes > PUSHED_BYTES)
  t.same(push.map(({ headers }) => [valuesOf(headers, 'transfer-encoding'), valuesOf(headers, 'content-length')].flat()), [['chunked']], 'P15: the push came in chunks')
  checkPlacement(t, seen, stage.secrets)
}

export async function registry (t: Test, stage: Stage): Promise<void> {
  const push = await watched(stage, async () => await succeed(t, stage.guest, `skopeo --insecure-policy copy -q oci:/clients/image:image docker://${ORIGINS.tokens}/pushed:latest`))
  t.ok(push.seen.some(({ origin, headers }) => origin === 'tokens' && /^Bearer [0-9a-f]{32}$/.test(valuesOf(headers, 'authorization').join())), 'P14: the token that the login gave is the guest\'s own and passes as it is')
  t.ok(push.seen.some(({ origin, method, bodyBytes }) => origin === 'tokens' && method === 'PATCH' && bodyBytes > 3_000_000), 'P14: the layer went up')
  checkPlacement(t, push.seen, stage.secrets)
  const pull = await watched(stage, async () => await succeed(t, stage.guest,
    `set -e; skopeo --insecure-policy copy -q docker://${ORIGINS.registry}/pushed:latest oci:/tmp/pulled:image; cd /tmp/pulled/blobs/sha256; for each in *; do echo "$each  $each"; done | sha256sum -c --quiet; ls /clients/image/blobs/sha256 | wc -l; ls | wc -l`))
  t.match(pull.result, /^(\d+)\n\1\n$/, 'P14: what was pulled is what was pushed')
  const blobs = pull.seen.filter(({ origin }) => origin === 'content')
  t.ok(blobs.length >= 2 && blobs.every(({ url }) => url.endsWith('?signature=of-the-registry')), 'P14: blobs came from the other host')
  t.ok(blobs.every(({ headers }) => valuesOf(headers, 'authorization').length === 0), 'P14: which got no login')
  checkPlacement(t, pull.seen, stage.secrets)
}

export async function packages (t: Test, stage: Stage): Promise<void> {
  const home = `https://${ORIGINS.packages}`
  const scripts: Readonly<Record<string, readonly [script: string, printed: string]>> = {
    npm: [`set -e; mkdir -p /tmp/npm; cd /tmp/npm; echo '//${ORIGINS.packages}/npm/:_authToken=\${API_KEY}' > .npmrc; echo '{}' > package.json
npm install --silent --no-audit --no-fund --no-update-notifier --cache /tmp/npm/cache --registry ${home}/npm/ parcel > /dev/null; node -p 'require("parcel")'`, 'a parcel of npm'],
    pip: [`set -e; python3 -m pip install -q --disable-pip-version-check --no-cache-dir --root-user-action=ignore --target /tmp/pip --index-url ${home}/simple/ parcel
PYTHONPATH=/tmp/pip python3 -c 'import parcel; print(parcel.CONTENT)'`, 'a parcel of pip'],
    apt: [`set -e; mkdir -p /tmp/apt/lists/partial /tmp/apt/archives/partial; cd /tmp/apt; : > status; echo 'deb [trusted=yes] ${home}/apt ./' > list
options="-o Dir::Etc::SourceList=/tmp/apt/list -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists=/tmp/apt/lists -o Dir::State::status=/tmp/apt/status -o Dir::Cache=/tmp/apt -o APT::Sandbox::User=root"
apt-get -q $options -o APT::Update::Error-Mode=any update > log 2>&1 || { cat log >&2; exit 1; }; apt-get -q $options download parcel > log 2>&1 || { cat log >&2; exit 1; }; cat parcel_*.deb`, 'what apt downloads it does not open']
  }
  for (const [name, [script, printed]] of Object.entries(scripts)) {
    const began = Date.now()
    const { result, seen } = await watched(stage, async () => await succeed(t, stage.guest, script))
    t.match(result, printed, `P16: ${name}`)
    t.comment(`${name} took ${Date.now() - began} ms`)
    t.ok(seen.length > 1, `${name} made ${seen.length} requests`)
    checkPlacement(t, seen, stage.secrets)
  }
}
