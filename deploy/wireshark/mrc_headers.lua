-- What mrc.lua knows of the wire: the layout of every MRC header, opcodes, names of values, and the sum of the ICRC.
--
-- Owns plain data, fields and arithmetic; registers nothing, so Wireshark may load it as a plugin of its own, before or after
-- mrc.lua, which asks for it by `require`. Layouts are those of mrcfabric.wire, and a test compares both, packet by packet.
--
-- MRC 1.0 7.5 (headers, opcodes), IBTA annex A17 (ICRC).

-- Layouts: name:bits:kind in the order of the wire. d decimal, x hexadecimal, s signed, b flag, - reserved.

local LAYOUTS = {
  BTH = "opcode:8:x m:1:b se:1:b pad_count:2:d tver:4:d p_key:16:x variant:8:d qp:24:x a:1:b r:1:b rtx:1:b ts:1:b -:4:- psn:24:d",
  METH = "rqmsn:16:d msn:16:d",
  TSETH = "tx_timestamp:16:d tsr:1:b -:11:- ftype:4:d",
  RETH = "va:64:x r_key:32:x dma_len:32:d",
  ImmDt = "immediate:32:x",
  AETH = "syndrome:8:d msn:24:d",
  SETH = "type:4:d next:5:d m:2:d -:3:- pr:1:b -:1:- ack_psn_offset:16:s entropy:32:x spdcid:16:d dpdcid:16:d -:8:- "
    .. "cack_psn:24:d cc_type:4:d cc_flags:4:d mpr:8:d sack_offset:16:s sack_bitmap:64:x tx_timestamp:16:d -:1:- "
    .. "ooo_count:15:d restore_cwnd:1:b rcv_cwnd_pen:7:d rcvd_bytes:24:d",
  NETH = "type:4:d next:5:d -:7:- nack_reason:8:d vendor:8:d entropy:32:x spdcid:16:d dpdcid:16:d -:8:- nack_psn:24:d "
    .. "cc_type:4:d cc_flags:4:d -:8:- tx_timestamp:16:d",
  PETH = "type:4:d next:5:d -:7:- -:8:- vendor:8:d probe_id:16:d -:16:- spdcid:16:d dpdcid:16:d tx_timestamp:16:d "
    .. "tsr:1:b -:11:- ftype:4:d",
  ERTH = "type:4:d next:5:d -:5:- op:2:d -:8:- vendor:8:d port_status_mask:32:x -:32:- tx_timestamp:16:d tsr:1:b -:11:- "
    .. "ftype:4:d",
  EETH = "type:4:d next:5:d -:3:- op:2:d -:2:- -:208:- tx_timestamp:16:d -:48:-",
  -- The same with op elsewhere, by the bits to the right of it: preference op_shift.
  EETH0 = "type:4:d next:5:d -:5:- op:2:d -:208:- tx_timestamp:16:d -:48:-",
  EETH4 = "type:4:d next:5:d -:1:- op:2:d -:4:- -:208:- tx_timestamp:16:d -:48:-",
}

-- MRC 1.0 7.5, opcodes.
local OPCODES = {
  [0xC6] = { "WRITE First", "METH", "TSETH", "RETH" },
  [0xC7] = { "WRITE Middle", "METH", "TSETH", "RETH" },
  [0xC8] = { "WRITE Last", "METH", "TSETH", "RETH" },
  [0xC9] = { "WRITE Last with Immediate", "METH", "TSETH", "RETH", "ImmDt" },
  [0xCA] = { "WRITE Only", "METH", "TSETH", "RETH" },
  [0xCB] = { "WRITE Only with Immediate", "METH", "TSETH", "RETH", "ImmDt" },
  [0xD1] = { "Acknowledge", "AETH" },
  [0xD8] = { "Endpoint Request", "ERTH" },
  [0xD9] = { "Endpoint Response", "EETH" },
  [0xDC] = { "Reliability SACK", "SETH" },
  [0xDD] = { "Reliability NACK", "NETH" },
  [0xDE] = { "Reliability Probe Request", "PETH" },
}
local OPS = { [0] = "Port Status Update", [1] = "EV Probe", [2] = "reserved", [3] = "reserved" }
local VALUES = {
  ["SETH.m"] = { [0] = "none", [1] = "SKIP_ONCE", [2] = "ALWAYS_SKIP", [3] = "reserved" },
  ["NETH.nack_reason"] = {
    [0x01] = "TRIMMED", [0x02] = "TRIMMED_LASTHOP", [0x06] = "NO_BITMAP", [0x07] = "NO_PKT_BUFFER",
    [0x0A] = "NO_RESOURCE", [0x0B] = "PSN_OOR_WINDOW", [0x19] = "UNEXP_EVENT",
  },
  ["AETH.syndrome"] = { [0x1F] = "acknowledge", [0x61] = "invalid request" },
  ["ERTH.op"] = OPS,
  ["EETH.op"] = OPS,
  ["BTH.opcode"] = {},
}
for code, row in pairs(OPCODES) do
  VALUES["BTH.opcode"][code] = row[1]
end

-- The fields of the headers, for whoever registers them.

local BASES = { d = base.DEC, x = base.HEX, s = base.DEC }
local UNSIGNED = { ftypes.UINT8, ftypes.UINT16, ftypes.UINT24, ftypes.UINT32, nil, nil, nil, ftypes.UINT64 }
local fields = {}

local function field_of(header, name, bits, kind, first)
  local lead = first % 8
  local bytes = math.floor((lead + bits + 7) / 8)
  local abbreviation = "mrc." .. (header == "BTH" and "" or header:lower() .. ".") .. name
  local mask
  if bits % 8 ~= 0 or lead ~= 0 then
    mask = (2 ^ bits - 1) * 2 ^ (bytes * 8 - lead - bits)
  end
  local values = VALUES[header .. "." .. name]
  if kind == "b" then
    return ProtoField.new(name, abbreviation, ftypes.BOOLEAN, nil, bytes * 8, mask), bytes
  elseif kind == "s" then
    return ProtoField.new(name, abbreviation, ftypes.INT16, values, base.DEC, mask), bytes
  end
  return ProtoField.new(name, abbreviation, UNSIGNED[bytes], values, BASES[kind], mask), bytes
end

-- header -> { size = bytes, rows = { { name, first bit, bits, field or nil, bytes } } }
local headers = {}
for header, layout in pairs(LAYOUTS) do
  local rows, bit = {}, 0
  local title = header:gsub("%d$", "")
  for name, bits, kind in layout:gmatch("(%S-):(%d+):(%S)") do
    bits = tonumber(bits)
    local field, bytes
    if kind ~= "-" then
      field, bytes = field_of(title, name, bits, kind, bit)
      local key = title .. "." .. name .. "@" .. bit
      fields[key] = fields[key] or field
      field = fields[key]
    end
    rows[#rows + 1] = { name = name, bit = bit, bits = bits, field = field, bytes = bytes }
    bit = bit + bits
  end
  headers[header] = { size = bit / 8, rows = rows, title = title }
end

-- CRC-32 over a string, going on from a state; byte operations by whichever library this Lua has.
local operations = bit32 or bit or load("return { bxor = function(a, b) return a ~ b end, rshift = function(a, n) return a >> n end }")()
local crc_table
local function crc32(state, text)
  if not crc_table then
    crc_table = {}
    for index = 0, 255 do
      local value = index
      for _ = 1, 8 do
        local low = value % 2
        value = operations.rshift(value, 1)
        value = low == 1 and operations.bxor(value, 0xEDB88320) % 2 ^ 32 or value
      end
      crc_table[index] = value
    end
  end
  for place = 1, #text do
    local index = operations.bxor(state % 256, text:byte(place)) % 256
    state = operations.bxor(operations.rshift(state, 8) % 2 ^ 24, crc_table[index]) % 2 ^ 32
  end
  return state
end

local function ones(text, first, last)
  return text:sub(1, first - 1) .. ("\255"):rep(last - first + 1) .. text:sub(last + 1)
end

-- IBTA annex A17: from the inner IPv6 header on, what may change in flight as ones. Takes the inner IPv6 header, the UDP
-- header and what is behind it without the sum itself, as strings; the sum as it stands in the packet, read as one number.
local function icrc(ipv6, udp, body)
  local head = ones(string.char(0x6F) .. ones(ipv6:sub(2), 1, 3), 8, 8)
  local state = 2 ^ 32 - 1 - crc32(2 ^ 32 - 1, ("\255"):rep(8) .. head .. ones(udp, 7, 8) .. ones(body, 5, 5))
  local turned = 0
  for _ = 1, 4 do
    turned, state = turned * 256 + state % 256, math.floor(state / 256)
  end
  return turned
end

local function signed(value)
  return value >= 0x8000 and value - 0x10000 or value
end

local function hexadecimal(number, digits)
  return ("0x%0" .. (digits or 1) .. "x"):format(number)
end

-- The numbers of the ports whose bits are set in the mask of an ERTH; the first one is port 1.
local function ports_of(range)
  local ports = {}
  for port = 1, 32 do
    ports[#ports + 1] = range:bitfield(4 * 8 + 32 - port, 1) == 1 and port or nil
  end
  return #ports == 0 and "none" or table.concat(ports, " ")
end

return {
  headers = headers, fields = fields, OPCODES = OPCODES, OPS = OPS, VALUES = VALUES, icrc = icrc, signed = signed,
  hexadecimal = hexadecimal, ports_of = ports_of,
}
