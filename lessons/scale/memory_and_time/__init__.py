"""What memory costs in time: recomputing a part, sharing state, and hiding what that sends."""
