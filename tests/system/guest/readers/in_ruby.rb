# Ruby's json: `parse` reads by JSON.parse, `load` by JSON.load, which makes objects of classes.
require "json"

def described(value)
  case value
  when nil, true, false then value.nil? ? "null" : value.to_s
  when String then "\"#{value.b.unpack1("H*")}\""
  when Symbol then described(value.to_s)
  when Numeric then "[\"n\",\"#{value}\"]"
  when Array then "[\"a\"#{value.map { |inner| ",#{described(inner)}" }.join}]"
  when Hash
    "[\"o\"#{value.map { |key, inner| ",[#{described(key)},#{described(inner)}]" }.join}]"
  else described(value.to_s) # an object of a class that the message named
  end
end

$stdout.sync = true
$stdin.each_line do |line|
  text = [line.chomp].pack("H*").force_encoding("UTF-8")
  begin
    whole = ARGV[0] == "load" ? JSON.load(text) : JSON.parse(text)
    puts whole.is_a?(Hash) ? described(whole) : "refused"
  rescue StandardError
    puts "refused"
  end
end
