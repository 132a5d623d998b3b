// The guest's last word is believed only when it is whole, small and exact.
import { symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { exitOf, exitWithoutReport } from '../../../../plugins/instances/guest/exit.ts'
import { cleanLine, parseReport, readReport } from '../../../../plugins/instances/guest/report.ts'
import { testFolder } from '../../../helpers/folder.ts'

const good = 'version=1\nexit_code=3\nsignal=0\noom=0\nend\n'

t.test('a whole report is read', async (t) => {
  t.same(parseReport(Buffer.from(good)), { exitCode: 3, signal: 0, oom: false })
  t.same(parseReport(Buffer.from('version=1\nexit_code=137\nsignal=9\noom=1\nerror=no memory\nend\n')), { exitCode: 137, signal: 9, oom: true, error: 'no memory' })
  t.same(parseReport(Buffer.from('version=1\nexit_code=0\nfuture=1\nend\n')), { exitCode: 0, signal: 0, oom: false }, 'unknown keys are ignored')
})

t.test('anything else is not', async (t) => {
  const hostile: Record<string, string> = {
    empty: '',
    cut: 'version=1\nexit_code=3\nsign',
    'without end': 'version=1\nexit_code=3\n',
    'without the last newline': good.slice(0, -1),
    'with something after the end': `${good}exit_code=0\n`,
    'only end': 'end\n',
    'wrong version': good.replace('version=1', 'version=2'),
    'no version': 'exit_code=3\nend\n',
    'no exit code': 'version=1\nend\n',
    'negative exit code': good.replace('=3', '=-3'),
    'huge exit code': good.replace('=3', '=99999999999999999999'),
    'exit code over 255': good.replace('=3', '=256'),
    'not a number': good.replace('=3', '=0x3'),
    'signal over 64': good.replace('signal=0', 'signal=65'),
    'oom 2': good.replace('oom=0', 'oom=2'),
    'a key twice': good.replace('end', 'exit_code=0\nend'),
    'a line without =': good.replace('end', 'hello\nend'),
    'a line without a key': good.replace('end', '=1\nend'),
    'a NUL': good.replace('end', 'x=\u0000\nend'),
    'over 4 KiB': good.replace('end', `x=${'y'.repeat(4096)}\nend`)
  }
  for (const [name, text] of Object.entries(hostile)) t.equal(parseReport(Buffer.from(text)), undefined, name)
  t.equal(parseReport(Buffer.from([0xff, 0xfe, 0x0a])), undefined, 'not text')
})

t.test('an error text is one clean line', async (t) => {
  t.equal(parseReport(Buffer.from(`version=1\nexit_code=1\nerror=\u001b[31mred\u0007 ${'x'.repeat(900)}\nend\n`))?.error?.length, 200)
  t.equal(cleanLine('a\u001b]0;title\u0007b\r'), 'a ]0;title b')
})

t.test('a missing file, an empty one, a link and a flood give no report', async (t) => {
  const folder = testFolder(t, { empty: '', whole: good, flood: good.repeat(2000) })
  await symlink('/etc/passwd', join(folder, 'link'))
  for (const name of ['missing', 'empty', 'link']) t.same(await readReport(join(folder, name)), { report: undefined, writtenAt: undefined }, name)
  t.equal((await readReport(join(folder, 'flood'))).report, undefined)
  const whole = await readReport(join(folder, 'whole'))
  t.equal(whole.report?.exitCode, 3)
  t.type(whole.writtenAt, 'number')
  await writeFile(join(folder, 'padded'), Buffer.concat([Buffer.alloc(5000), Buffer.from(good)]))
  t.equal((await readReport(join(folder, 'padded'))).report, undefined)
})

t.test('exit messages are the documented ones', async (t) => {
  const table: readonly [number, number, boolean, string | undefined, string][] = [
    [0, 0, false, undefined, 'success'],
    [1, 0, false, undefined, 'exit code 1'],
    [126, 0, false, 'cannot run', 'permission denied (command not executable)'],
    [127, 0, false, 'no such file', 'command not found'],
    [137, 9, false, undefined, 'killed by signal 9 (killed)'],
    [137, 9, true, undefined, 'killed by signal 9 (killed) - OOM'],
    [137, 0, true, undefined, 'killed by signal 9 (killed) - OOM'],
    [137, 0, false, undefined, 'exit code 137'],
    [143, 15, false, undefined, 'killed by signal 15 (terminated)'],
    [139, 11, false, undefined, 'killed by signal 11 (segmentation fault)'],
    [159, 31, false, undefined, 'killed by signal 31 (SIGSYS)'],
    [162, 34, false, undefined, 'killed by signal 34 (signal 34)'],
    [125, 0, false, 'the disk is full', 'exit code 125: the disk is full']
  ]
  for (const [exitCode, signal, oom, error, message] of table) {
    t.same(exitOf({ exitCode, signal, oom, ...(error === undefined ? {} : { error }) }), { exitCode, exitMessage: message })
  }
  t.equal(exitWithoutReport('stopped', 'x').exitCode, null)
  t.match(exitWithoutReport('unexpected', 'qemu: oops').exitMessage, /without reporting.*qemu: oops/)
})
