import t from 'tap'
import { InvalidName } from '../../../../core/library/oci/errors.ts'
import { parseReference } from '../../../../core/library/oci/reference.ts'

const hex = 'a1'.repeat(32)

t.test('references are normalised as Docker does', async (t) => {
  const cases: ReadonlyArray<readonly [string, string]> = [
    ['alpine', 'docker.io/library/alpine:latest'],
    ['alpine:3.19', 'docker.io/library/alpine:3.19'],
    ['user/x', 'docker.io/user/x:latest'],
    ['docker.io/alpine', 'docker.io/library/alpine:latest'],
    ['index.docker.io/user/x:1', 'docker.io/user/x:1'],
    ['localhost/x', 'localhost/x:latest'],
    ['localhost:5000/x', 'localhost:5000/x:latest'],
    ['host:5000/a/b/c:T.a_g-1', 'host:5000/a/b/c:T.a_g-1'],
    ['ghcr.io/a/b', 'ghcr.io/a/b:latest'],
    ['[::1]:5000/x', '[::1]:5000/x:latest'],
    ['Host/x', 'Host/x:latest'],
    ['a__b/c-d--e.f', 'docker.io/a__b/c-d--e.f:latest'],
    [` alpine@sha256:${hex}\n`, `docker.io/library/alpine@sha256:${hex}`],
    [`alpine:3@sha256:${hex}`, `docker.io/library/alpine@sha256:${hex}`]
  ]
  for (const [written, name] of cases) {
    const reference = parseReference(written)
    t.equal(reference.name, name, written)
    t.equal(parseReference(name).name, name, 'normalising again changes nothing')
    t.equal(reference.repository, `${reference.domain}/${reference.path}`)
  }
  t.equal(parseReference('app:1', 'registry.example').name, 'registry.example/app:1')
  t.match(parseReference('alpine'), { explicitDomain: false, shortPath: 'alpine', path: 'library/alpine' })
  t.match(parseReference('docker.io/alpine'), { explicitDomain: true, shortPath: 'alpine' })
})

t.test('what is no reference is refused, and the message says why', async (t) => {
  const cases: ReadonlyArray<readonly [string, RegExp]> = [
    ['', /empty/],
    ['   ', /empty/],
    ['Alpine', /lower case/],
    ['docker://alpine', /scheme/],
    ['https://host/x', /scheme/],
    ['alpine:', /tag/],
    ['alpine:-x', /tag/],
    [`alpine:${'t'.repeat(129)}`, /tag/],
    ['alpine@sha256:abc', /digest/],
    [`alpine@sha512:${hex}${hex}`, /digest/],
    ['a//b', /repository/],
    ['/a', /repository/],
    ['a/', /repository/],
    ['a..b', /repository/],
    ['a___b', /repository/],
    ['ho st:5/x', /repository|host/],
    ['-host.x/y', /host/],
    ['host:999999/y', /host/],
    ['../../etc/passwd', /host|repository/],
    ['a b', /repository/],
    ['a\u0000b', /repository/],
    ['--help', /repository/],
    [hex, /image id/],
    ['x'.repeat(401), /longer/],
    [`h.io/${'x'.repeat(256)}`, /repository/]
  ]
  for (const [written, why] of cases) {
    t.throws(() => parseReference(written), { code: InvalidName.code, message: why }, JSON.stringify(written.slice(0, 40)))
  }
})
