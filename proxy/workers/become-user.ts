// Gives up what the program was started with: from root to a user that has nothing but its own folder.
//
// This happens here rather than before the program is loaded, since program and Node may lie where only root can pass through, such as a clone below /root. The kernel clears
// every capability of a process that goes from root to another user; `no_new_privs`, which the starting process sets, keeps it from getting one back.

const FORM = /^(\d{1,10}):(\d{1,10})$/

/** @param text `UID:GID` @throws Error when the text is invalid, the user is root, or this process cannot become that user for good */
export function becomeUser (text: string): void {
  const [, uid, gid] = (FORM.exec(text) ?? []).map(Number)
  if (uid === undefined || gid === undefined || uid === 0 || gid === 0) throw new Error(`--user: ${text} is not UID:GID of a user other than root`)
  // Where Node does not allow a program to change its user, the starting process has already done it.
  if (!isUser(uid, gid)) {
    process.setgroups?.([])
    process.setgid?.(gid)
    process.setuid?.(uid)
  }
  if (process.getuid?.() !== uid || process.getgid?.() !== gid || canReturn()) throw new Error(`--user: this process could not become ${text} for good`)
}

/** Whether this process is that user already, and in no other group. */
function isUser (uid: number, gid: number): boolean {
  return process.getuid?.() === uid && process.geteuid?.() === uid && process.getgid?.() === gid && process.getegid?.() === gid && process.getgroups?.().every((group) => group === gid) === true
}

function canReturn (): boolean {
  try {
    process.setuid?.(0)
    return true
  } catch {
    // The kernel has refused, as it should.
    return false
  }
}
