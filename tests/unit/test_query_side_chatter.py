"""Is what a model says around its questions and passages, in English and Chinese, left out?"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from querylab import FAKE, ByQuestion, says

from cormorant.langchain.retrievers import (
    DecompositionRetriever,
    HypotheticalDocumentEmbedder,
    MultiQueryRetriever,
    RePhraseQueryRetriever,
)
from cormorant.langchain.retrievers.asking.rewriting import passage, questions
from cormorant.langchain.retrievers.multi_query import LineListOutputParser

ENGLISH = ["what eats fish?", "who dives?"]
CHINESE = ["谁吃鱼？", "谁潜水？"]
TRADITIONAL = ["誰吃魚？", "誰潛水？"]


class TestQuestions:
    @pytest.mark.parametrize(
        "reply",
        [
            "一、谁吃鱼？\n二、谁潜水？",
            "一.谁吃鱼？\n二.谁潜水？",
            "（一）谁吃鱼？\n（二）谁潜水？",
            "(一) 谁吃鱼？\n(二) 谁潜水？",
            "1、谁吃鱼？\n2、谁潜水？",
            "1．谁吃鱼？\n2．谁潜水？",
            "1：谁吃鱼？\n2：谁潜水？",
            "1）谁吃鱼？\n2）谁潜水？",
            "【1】谁吃鱼？\n【2】谁潜水？",
            "①谁吃鱼？\n②谁潜水？",
            "① 谁吃鱼？\n② 谁潜水？",
            "⑴谁吃鱼？\n⑵谁潜水？",
            "问题1：谁吃鱼？\n问题2：谁潜水？",
            "问题一：谁吃鱼？\n问题二：谁潜水？",
            "子问题1：谁吃鱼？\n子问题2：谁潜水？",
            "第一个问题：谁吃鱼？\n第二个问题：谁潜水？",
            "第一，谁吃鱼？\n第二，谁潜水？",
            "版本1：谁吃鱼？\n版本2：谁潜水？",
            "- 谁吃鱼？\n- 谁潜水？",
            "· 谁吃鱼？\n· 谁潜水？",
            "“谁吃鱼？”\n“谁潜水？”",
            "「谁吃鱼？」\n「谁潜水？」",
            "谁吃鱼？\n\n谁潜水？\n谁吃鱼",
            "以下是两个不同的问法：\n谁吃鱼？\n谁潜水？",
            "以下是改写后的查询\n谁吃鱼？\n谁潜水？",
            "下面是2个问题：\n\n1、谁吃鱼？\n2、谁潜水？",
            "好的，以下是两个问题：\n一、谁吃鱼？\n二、谁潜水？\n\n希望这些对您有帮助！",
            "好的！\n谁吃鱼？\n谁潜水？\n如果您还需要更多问法，请告诉我。",
            "当然可以。\n谁吃鱼？\n谁潜水？\n如有其他问题，请随时提问。",
            "没问题！这里是改写：\n谁吃鱼？\n谁潜水？",
            "根据您的问题，改写如下：\n谁吃鱼？\n谁潜水？",
            "我将问题改写如下\n谁吃鱼？\n谁潜水？",
            "原问题：鸬鹚做什么？\n1. 谁吃鱼？\n2. 谁潜水？",
            "**问题一：** 谁吃鱼？\n**问题二：** 谁潜水？",
            "### 改写\n谁吃鱼？\n谁潜水？",
            '```json\n{"问题": ["谁吃鱼？", "谁潜水？"]}\n```',
            "<think>用户想知道：\n1、鸟\n2、鱼</think>谁吃鱼？\n谁潜水？",
        ],
    )
    def test_chinese_chatter_and_numbering_are_no_questions(self, reply: str) -> None:
        assert LineListOutputParser().parse(reply) == CHINESE

    @pytest.mark.parametrize(
        "reply",
        [
            "好的，以下是兩個問題：\n一、誰吃魚？\n二、誰潛水？\n希望這些對您有幫助！",
            "當然，這裡是改寫後的問題：\n誰吃魚？\n誰潛水？",
            "問題1：誰吃魚？\n問題2：誰潛水？",
        ],
    )
    def test_traditional_too(self, reply: str) -> None:
        assert LineListOutputParser().parse(reply) == TRADITIONAL

    @pytest.mark.parametrize(
        "reply",
        [
            "Original question: what do they do?\n1. what eats fish?\n2. who dives?",
            "Got it! Here are two questions:\nwhat eats fish?\nwho dives?",
            "Rephrased question 1: what eats fish?\nRephrased question 2: who dives?",
            "what eats fish?\nwho dives?\nIf you need more, let me know.",
            "(1) what eats fish?\n(2) who dives?",
            "These are the alternative questions.\nwhat eats fish?\nwho dives?",
            "I'm sorry, I can give only two.\nwhat eats fish?\nwho dives?",
        ],
    )
    def test_more_english(self, reply: str) -> None:
        assert LineListOutputParser().parse(reply) == ENGLISH

    @pytest.mark.parametrize(
        "question",
        [
            "一个人怎么划船？",
            "十大鸟类是哪些？",
            "第一次看鸟带什么？",
            "第3章讲什么？",
            "1月1日放假吗",
            "2024年的预算",
            "3：2的比例怎么算",
            "1:n relations in SQL",
            "希望号是什么船？",
            "如果您有发票怎么退款？",
            "请告诉我鱼吃什么？",
            "好的望远镜多少钱？",
            "可以钓鱼的地方有哪些",
            "问题票据怎么处理",
            "If you have a cold, may you fly?",
            "if you need a visa, where do you apply?",
            "3.5 mm jack",
            "Great Lakes fishing",
            "OK corral gunfight",
            "the following wind, what is it?",
            "query: planners in SQL"[7:],
            "I don't know how to log in, what now?",
            "我不知道密码怎么登录",
        ],
    )
    def test_a_question_that_begins_as_talk_does_stays_as_it_is(self, question: str) -> None:
        assert questions(f"{question}\nanother one", "who") == [question, "another one"]

    @pytest.mark.parametrize(
        "refusal",
        [
            "抱歉，我无法回答这个问题。",
            "很抱歉，我不能提供帮助。",
            "非常抱歉！",
            "对不起，我做不到。",
            "不好意思，这个问题我无法处理。",
            "作为一个AI语言模型，我没有个人观点。",
            "作为人工智能，我不能回答。",
            "我是一个AI助手，无法提供医疗建议。",
            "我只是一个语言模型。",
            "我无法生成这样的内容。",
            "我目前无法为您提供这些信息。",
            "很遗憾，我不能继续。",
            "很抱歉，我無法回答這個問題。",
            "對不起，我不能提供。",
            "I'm really sorry, but I can't.",
            "Unfortunately, I am not able to help with that.",
            "I'm afraid I cannot answer that.",
            "I must decline.",
            "I'm just an AI and have no opinion.",
            "Sorry, that is beyond me.",
            "I can't provide that.",
        ],
    )
    def test_a_refusal_is_no_question_and_no_passage(self, refusal: str) -> None:
        assert questions(refusal, "who") == []
        assert passage(refusal, "who") == ""
        assert passage(f"<think>No.</think>\n“{refusal}”", "who") == ""
        embedder = HypotheticalDocumentEmbedder.from_llm(says(refusal), FAKE)
        _, passages, notes = embedder.imagine("q")
        assert passages == []
        assert "it refused" in notes[0]


class TestOneQuery:
    @pytest.mark.parametrize(
        ("reply", "query"),
        [
            ("Sure! Here is the query: what do cormorants eat", "what do cormorants eat"),
            ("Here's a rephrased version: what do cormorants eat?", "what do cormorants eat?"),
            ("Rephrased question: what do cormorants eat?", "what do cormorants eat?"),
            ("Standalone query: cormorant food", "cormorant food"),
            ("Search query: “cormorant food”", "cormorant food"),
            ("Query: cormorant food\n\nThis keeps the meaning.", "cormorant food"),
            ("改写后的问题：鸬鹚吃什么？", "鸬鹚吃什么？"),
            ("查询：鸬鹚吃什么？", "鸬鹚吃什么？"),
            ("好的，以下是改写后的查询：鸬鹚吃什么？", "鸬鹚吃什么？"),
            ("以下是改写后的问题：\n鸬鹚吃什么？", "鸬鹚吃什么？"),
            ("搜索词：「鸬鹚 食物」", "鸬鹚 食物"),
        ],
    )
    def test_what_stands_before_it_is_not_searched_for(self, reply: str, query: str) -> None:
        child = ByQuestion()
        result = RePhraseQueryRetriever.from_llm(child, says(reply)).retrieve("它吃什么？")
        assert child.asked == [query]
        assert result.degraded == ()


class TestPassages:
    @pytest.mark.parametrize(
        "reply",
        [
            "Cormorants eat fish.",
            "Sure! Here is a passage: Cormorants eat fish.",
            "Sure, here's a passage that answers the question:\n\nCormorants eat fish.",
            "Certainly!\n\nCormorants eat fish.",
            "Of course.\nCormorants eat fish.",
            "Here is the answer in the style of a document:\nCormorants eat fish.",
            "Passage: Cormorants eat fish.",
            "**Passage:** Cormorants eat fish.",
            "```\nCormorants eat fish.\n```",
            '"Cormorants eat fish."',
            "Cormorants eat fish.\n\nI hope this helps!",
            "Cormorants eat fish.\n\nLet me know if you need more.",
            "Cormorants eat fish.\n\n(Note: this is a hypothetical passage.)",
            "<think>A passage: birds.</think>Cormorants eat fish.",
        ],
    )
    def test_english_chatter_is_not_embedded(self, reply: str) -> None:
        assert passage(reply, "who") == "Cormorants eat fish."

    @pytest.mark.parametrize(
        "reply",
        [
            "鸬鹚吃鱼。",
            "好的，以下是一段假设性的回答：鸬鹚吃鱼。",
            "好的！以下是一段文字：\n\n鸬鹚吃鱼。",
            "以下是可能出现在文档中的一段内容：\n鸬鹚吃鱼。",
            "当然可以。\n鸬鹚吃鱼。",
            "没问题！\n鸬鹚吃鱼。",
            "段落：鸬鹚吃鱼。",
            "回答：鸬鹚吃鱼。",
            "「鸬鹚吃鱼。」",
            "鸬鹚吃鱼。\n\n希望这对您有帮助！",
            "鸬鹚吃鱼。\n\n如果您需要更多信息，请告诉我。",
            "鸬鹚吃鱼。\n（注：以上内容为假设，仅供参考。）",
        ],
    )
    def test_chinese_chatter_is_not_embedded(self, reply: str) -> None:
        assert passage(reply, "who") == "鸬鹚吃鱼。"

    @pytest.mark.parametrize(
        "reply",
        [
            "I don't know what cormorants eat.",
            "I do not have any information about that.",
            "Unfortunately, I don't have access to that data.",
            "I'm not sure what you mean.",
            "I am not aware of such a bird.",
            "There is not enough information to answer.",
            "No relevant information is available.",
            "Could you please clarify the question?",
            "Please provide more context.",
            "我不知道鸬鹚吃什么。",
            "我没有足够的信息来回答。",
            "我目前没有相关资料。",
            "很遗憾，我没有这方面的信息。",
            "没有足够的信息来回答这个问题。",
            "暂无相关信息。",
            "无法确定。",
            "请提供更多背景信息。",
            "我沒有相關資料。",
        ],
    )
    def test_one_that_knows_nothing_is_not_embedded(self, reply: str) -> None:
        assert passage(reply, "who") == ""

    @pytest.mark.parametrize(
        "text",
        [
            "Sorry is the hardest word, linguists say.",
            "There is no evidence that cormorants eat bread.",
            "No information is shared with third parties.",
            "Please return the form within 14 days.",
            "Certainly not all birds dive.",
            "Here is how a cormorant dives: it leaps.",
            "The answer: 42, says the guide.",
            "目前没有任何证据表明鸬鹚吃面包。",
            "我们没有任何隐藏费用。",
            "好的望远镜可以看清鸟。",
            "抱团取暖是鸟的习性。",
            "这是一种鸟：它会潜水。",
            "First.\nSecond line.\n\nThird.",
        ],
    )
    def test_a_passage_that_begins_as_talk_does_stays_as_it_is(self, text: str) -> None:
        assert passage(text, "who") == text


@pytest.mark.parametrize("kind", [MultiQueryRetriever, DecompositionRetriever])
def test_the_retrievers_ask_what_was_meant(kind: type[MultiQueryRetriever]) -> None:
    child = ByQuestion()
    reply = "好的，以下是两个问题：\n一、谁吃鱼？\n二、谁潜水？\n希望这些对您有帮助！"
    kind.from_llm(child, says(reply)).invoke("鸬鹚")
    assert sorted(child.asked) == sorted(["鸬鹚", *CHINESE])


@pytest.mark.parametrize(
    "line",
    [
        "here are " * 50_000,
        "Here is the " + "passage " * 50_000,
        "version " * 50_000,
        "改写后" * 50_000,
        "以下是" * 50_000,
        "sure" + " " * 200_000,
        "- " * 100_000,
        "(" * 200_000,
        "**" * 100_000,
        "“" * 200_000,
        "1. " * 70_000,
        "i am " + "really " * 50_000,
        "注：" + "假" * 200_000,
    ],
)
def test_a_line_that_runs_on_is_read_in_linear_time(line: str) -> None:
    """Each would take minutes if it were not."""
    questions(f"{line}\n{line}x", "who")
    passage(f"{line}\n{line}x\n{line}", "who")
