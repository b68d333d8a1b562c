//! What must happen at one moment on the server (Lua, as `EVAL` takes it).
//!
//! A moment is a number that only grows: the server's time in microseconds, or one more than the one before, so that it goes on growing where
//! the server has lost it. Leases are those of Nishtala et al., "Scaling Memcache at Facebook" (NSDI 2013): a deletion takes the lease away, and
//! what was fetched before it cannot be put any more.

/// The present moment of `KEYS[1]`; the first if there was none.
pub(super) const BEGIN: &str = "
local time = redis.call('TIME')
redis.call('SET', KEYS[1], string.format('%.0f', time[1] * 1000000 + time[2]), 'NX')
return redis.call('GET', KEYS[1])
";

/// The next moment of `KEYS[1]`, which it answers, is the one at which the tags behind `KEYS[2]` were invalidated. A tag's key lives
/// for as long as what carries it, as `PUT` has seen to, and no longer for that.
///
/// A tag that the server does not know stays unknown. When it was invalidated is written in the table `KEYS[2]`, under three digits of its hash:
/// at most 4,096 fields, however many tags there are, and it holds for all whose hashes begin so. What was before the table `began` nobody knows.
///
/// `PERSIST` changes nothing, but it is a write that a server takes which is full; after it the server takes the others of a script too. What is
/// of another type is nothing that was written here, and goes.
pub(super) const INVALIDATE: &str = "
redis.call('PERSIST', KEYS[1])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local last = tonumber(redis.pcall('GET', KEYS[1]) or '0') or 0
if now <= last then now = last + 1 end
local moment = string.format('%.0f', now)
redis.call('SET', KEYS[1], moment)
if redis.call('TYPE', KEYS[2]).ok ~= 'hash' then
  redis.call('UNLINK', KEYS[2])
  redis.call('HSET', KEYS[2], 'began', moment)
end
for i = 3, #KEYS do
  redis.call('HSET', KEYS[2], string.sub(redis.sha1hex(KEYS[i]), 1, 3), moment)
  redis.call('SET', KEYS[i], moment, 'XX', 'KEEPTTL')
end
return moment
";

/// The next moment of `KEYS[1]`, if it has one, which it answers, is the one at which all tags were invalidated that have no key of their own: a
/// table `KEYS[2]` that comes later begins no earlier. Who forgets the others then has invalidated all. Where there is no moment, the next is the first.
pub(super) const CLEAR: &str = "
local moment = redis.pcall('GET', KEYS[1])
if moment then
  redis.call('PERSIST', KEYS[1])
  local time = redis.call('TIME')
  local now = time[1] * 1000000 + time[2]
  local last = tonumber(moment) or 0
  if now <= last then now = last + 1 end
  moment = string.format('%.0f', now)
  redis.call('SET', KEYS[1], moment)
end
if redis.call('EXISTS', KEYS[2]) == 1 then redis.call('UNLINK', KEYS[2]) end
return moment
";

/// What `LEASE` answers when a value is there.
pub(super) const KEPT: &str = "KEPT";

/// Grants the lease `ARGV[1]` at `KEYS[1]` for `ARGV[2]` milliseconds, unless there is one, or a value at `KEYS[2]`.
pub(super) const LEASE: &str = "
if redis.call('EXISTS', KEYS[2]) == 1 then return 'KEPT' end
return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX')
";

/// Ends the lease `ARGV[1]` at `KEYS[1]`, if it is still the one.
pub(super) const END_LEASE: &str = "
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('UNLINK', KEYS[1]) end
return 1
";

/// Puts the value `ARGV[2]` at `KEYS[1]` for `ARGV[3]` milliseconds: if the lease `ARGV[1]` is empty, or still the one at `KEYS[2]`, which
/// ends. Tags, `KEYS[5]` and so on, that nobody knows of any more begin when they may have been invalidated last, by the table `KEYS[4]` (see
/// `INVALIDATE`). A server that is full refuses the first write of a script, but not those behind one that it took, nor one that frees memory: so
/// the first is none of those, and the lease is ended last.
/// Answers the present moment of `KEYS[3]`, if it has one.
pub(super) const PUT: &str = "
local moment = redis.call('GET', KEYS[3])
if ARGV[1] ~= '' and redis.call('GET', KEYS[2]) ~= ARGV[1] then return moment end
if #KEYS > 4 then
  if not moment then
    local time = redis.call('TIME')
    moment = string.format('%.0f', time[1] * 1000000 + time[2])
    redis.call('SET', KEYS[3], moment)
  end
  if redis.call('TYPE', KEYS[4]).ok ~= 'hash' then
    redis.call('SET', KEYS[4], '')
    redis.call('UNLINK', KEYS[4])
    redis.call('HSET', KEYS[4], 'began', moment)
  end
  local began = redis.call('HGET', KEYS[4], 'began') or moment
  for i = 5, #KEYS do
    local since = redis.call('HGET', KEYS[4], string.sub(redis.sha1hex(KEYS[i]), 1, 3))
    if not since or tonumber(since) < tonumber(began) then since = began end
    if not redis.call('SET', KEYS[i], since, 'NX', 'PX', ARGV[3])
      and redis.call('PTTL', KEYS[i]) < tonumber(ARGV[3]) then
      redis.call('PEXPIRE', KEYS[i], ARGV[3])
    end
  end
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
redis.call('UNLINK', KEYS[2])
return moment
";
