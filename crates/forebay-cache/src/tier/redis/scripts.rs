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

/// The next moment of `KEYS[1]`, which it answers, is the one at which the tags behind it were invalidated; kept for `ARGV[1]` milliseconds.
///
/// A tag that the server does not know stays unknown: nothing that carries it is read, and what is put later begins at a moment that is no
/// earlier. `PERSIST` changes nothing, but it is a write that a server takes which is full; after it the server takes the others of a script too.
pub(super) const INVALIDATE: &str = "
redis.call('PERSIST', KEYS[1])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local last = tonumber(redis.call('GET', KEYS[1]) or '0')
if now <= last then now = last + 1 end
local moment = string.format('%.0f', now)
redis.call('SET', KEYS[1], moment)
for i = 2, #KEYS do
  redis.call('SET', KEYS[i], moment, 'XX', 'PX', ARGV[1])
end
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
/// ends. Tags, `KEYS[4]` and so on, that nobody knows of any more begin at the present moment of `KEYS[3]`. The lease is ended last: a server
/// that is full refuses the first write of a script, but not those behind one that it took.
pub(super) const PUT: &str = "
if ARGV[1] ~= '' and redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
if #KEYS > 3 then
  local moment = redis.call('GET', KEYS[3])
  if not moment then
    local time = redis.call('TIME')
    moment = string.format('%.0f', time[1] * 1000000 + time[2])
    redis.call('SET', KEYS[3], moment)
  end
  for i = 4, #KEYS do
    if not redis.call('SET', KEYS[i], moment, 'NX', 'PX', ARGV[3])
      and redis.call('PTTL', KEYS[i]) < tonumber(ARGV[3]) then
      redis.call('PEXPIRE', KEYS[i], ARGV[3])
    end
  end
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
redis.call('UNLINK', KEYS[2])
return 1
";
