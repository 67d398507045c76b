-- Wireshark and tshark show the way of a packet with this: the uSIDs in the outer destination address, and those of the
-- segment that prolongs it. Runs after all other dissectors, so that packets of any contents show their way.
--
-- Owns the display alone: the layout is that of mrcfabric.wire.usid, the names are those of mrcfabric.naming, and a test
-- compares. Install: see docs/PACKETS.md. What is behind the tunnel is mrc.lua's.
--
-- RFC 9800 3 and 4.1 (F3216 unless the preferences say otherwise), RFC 8754 (SRH).

local usid = Proto("usid", "SRv6 uSID container")

usid.prefs.block = Pref.uint("Block length", 32, "Bits of the locator block: a multiple of 8, 8 to 64")
usid.prefs.width = Pref.uint("uSID length", 16, "Bits of a uSID: 8, 16, 24 or 32")
usid.prefs.names = Pref.bool("Name uSIDs", true, "By the bits of mrcfabric: tier 2, plane 3, index 11 (16-bit uSIDs)")

local next_header, destination = Field.new("ipv6.nxt"), Field.new("ipv6.dst")
local segment = Field.new("ipv6.routing.srh.addr")
-- IPv6 in IPv6, with or without a routing header between them.
local TUNNELS = { [41] = true, [43] = true }

local way = {
  block = ProtoField.bytes("usid.block", "Block"),
  active = ProtoField.uint32("usid.active", "Active uSID", base.HEX),
  one = ProtoField.uint32("usid.list", "uSID", base.HEX),
  left = ProtoField.uint32("usid.left", "uSIDs left"),
  path = ProtoField.string("usid.path", "Path"),
  segment = ProtoField.uint32("usid.segment", "uSID of the segment", base.HEX),
}
usid.fields = { way.block, way.active, way.one, way.left, way.path, way.segment }

local function name_of(number, bits)
  if bits ~= 16 or not usid.prefs.names then
    return ("%0" .. bits / 4 .. "x"):format(number)
  end
  local tier, plane, index = math.floor(number / 2 ^ 14), math.floor(number / 2 ^ 11) % 8, number % 2 ^ 11
  if tier == 0 then
    return ("port-%d"):format(index - 1)
  elseif tier == 3 then
    return ("p%d-down-%d"):format(plane, index)
  end
  return ("p%d-t%d-%d"):format(plane, tier - 1, index)
end

-- Adds the uSIDs up to the end marker; returns them as names.
local function show_usids(range, tree, field, block, bits)
  local names = {}
  for bit = block, 128 - bits, bits do
    local number = range:bitfield(bit, bits)
    if number == 0 then
      break
    end
    names[#names + 1] = name_of(number, bits)
    tree:add(field, range(bit / 8, bits / 8), number):append_text(" (" .. names[#names] .. ")")
  end
  return names
end

function usid.dissector(_, _, tree)
  local first, address = next_header(), destination()
  if not first or not TUNNELS[first.value] or not address or not address.range or address.range:len() ~= 16 then
    return
  end
  local block, bits = usid.prefs.block, usid.prefs.width
  if block % 8 ~= 0 or block < 8 or block > 64 or bits % 8 ~= 0 or bits < 8 or bits > 32 then
    block, bits = 32, 16
  end
  local range = address.range
  local root = tree:add(usid, range)
  root:add(way.block, range(0, block / 8))
  local names = show_usids(range, root, way.one, block, bits)
  root:add(way.active, range(block / 8, bits / 8), range:bitfield(block, bits)):set_generated()
  root:add(way.left, range, #names):set_generated()
  local path = #names > 0 and table.concat(names, " ") or "none left"
  root:add(way.path, range, path):set_generated()
  root:append_text(": " .. path)
  for _, one in ipairs({ segment() }) do
    if one.range and one.range:len() == 16 then
      local rest = show_usids(one.range, root, way.segment, block, bits)
      root:append_text("; segment: " .. table.concat(rest, " "))
    end
  end
end

register_postdissector(usid)
