#include "widgets/explore/state_view.h"

#include <algorithm>
#include <cmath>

#include <QAbstractItemView>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QVBoxLayout>

#include "schedules/model/analytic_costs.h"
#include "widgets/style.h"

namespace stagewright {

namespace {

QString words(std::string_view text) { return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size())); }

constexpr int mostReplicasLog = 10;
constexpr int mostBatch = 128;

} // namespace

StateView::StateView(QWidget* parent) : QWidget(parent)
{
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(8, 2, 8, 6);
    column->setSpacing(6);
    m_topics = new QTabBar(this);
    m_topics->setObjectName(QStringLiteral("stateTopics"));
    m_topics->setDrawBase(false);
    m_topics->setExpanding(false);
    m_topics->setAccessibleName(tr("What the page State shows"));
    m_topics->addTab(tr("ZeRO stages"));
    m_topics->setTabToolTip(0, tr("What replicas that share weights, gradients and optimizer state need and take"));
    m_topics->addTab(tr("Uneven ranks"));
    m_topics->setTabToolTip(1, tr("Batch and state divided among ranks of different speed and memory (Cephalo)"));
    m_topics->addTab(tr("Partial backward"));
    m_topics->setTabToolTip(
        2, tr("Replicas that go back only to a layer of their own (SPB): who sends gradients of which layer"));
    column->addWidget(m_topics);
    m_form = new QGridLayout;
    m_form->setHorizontalSpacing(8);
    m_form->setVerticalSpacing(2);
    for (const int of : {0, 1, 2}) m_form->setColumnStretch(of, of == 1 ? 6 : 5); // the device has the longest name
    buildForm();
    column->addLayout(m_form);
    m_pictures = new QStackedWidget(this);
    m_picture = new StatePicture(m_pictures);
    makeCopyable(m_picture, [this] { return m_picture->table(); });
    m_mixed = new MixedPicture(m_pictures);
    m_cuts = new CutPicture(m_pictures);
    for (QWidget* picture :
         {static_cast<QWidget*>(m_picture), static_cast<QWidget*>(m_mixed), static_cast<QWidget*>(m_cuts)})
        m_pictures->addWidget(picture);
    column->addWidget(m_pictures, 1);
    arrange();
    showCuts();
    connect(m_topics, &QTabBar::currentChanged, this, &StateView::arrange);
    connect(m_topics, &QTabBar::currentChanged, this, &StateView::questionChanged);
    connect(this, &StateView::questionChanged, this, &StateView::showCuts);
}

void StateView::buildForm()
{
    const auto add = [&](const QString& title, QWidget* field, const QString& meaning, const char* name,
                         std::vector<StateTopic> topics) {
        auto* label = makeLabel(title, "secondary", this);
        label->setBuddy(field);
        label->setToolTip(meaning);
        field->setToolTip(meaning);
        field->setAccessibleName(title);
        field->setObjectName(QString::fromLatin1(name));
        m_fields.push_back({label, field, std::move(topics)});
    };
    const auto choice = [this](std::initializer_list<std::pair<QString, const char*>> items) {
        auto* box = new QComboBox(this);
        box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
        for (const auto& [title, value] : items) box->addItem(title, QString::fromLatin1(value));
        box->view()->setTextElideMode(Qt::ElideNone);
        connect(box, &QComboBox::currentIndexChanged, this, &StateView::questionChanged);
        return box;
    };
    const StateQuestion start;
    m_model = choice({});
    for (const ModelPreset& preset : modelPresets()) m_model->addItem(words(preset.name));
    m_model->setCurrentText(QString::fromStdString(start.model));
    m_device = choice({});
    for (const DevicePreset& preset : devicePresets()) m_device->addItem(words(preset.title), words(preset.name));
    m_device->setCurrentIndex(m_device->findData(QString::fromStdString(start.device)));
    m_gather = choice({{tr("once a batch"), "batch"}, {tr("for each microbatch"), "microbatch"}});
    m_reduce = choice({{tr("at the end"), "late"},
                       {tr("stage by stage"), "overlapped"},
                       {tr("each microbatch"), "microbatch"},
                       {tr("stage by stage, then update"), "stepped"}});
    m_reduce->setCurrentIndex(1);
    auto* mesh = new QWidget(this);
    auto* meshRow = new QHBoxLayout(mesh);
    meshRow->setContentsMargins(0, 0, 0, 0);
    m_replicas = new QSlider(Qt::Horizontal, mesh);
    m_replicas->setRange(0, mostReplicasLog);
    m_replicas->setPageStep(1);
    m_replicas->setAccessibleName(tr("Replicas"));
    m_replicasField = new QSpinBox(mesh);
    m_replicasField->setRange(1, 1 << mostReplicasLog);
    m_replicasField->setValue(start.replicas);
    m_replicasField->setKeyboardTracking(false);
    m_replicasField->setAccessibleName(tr("Replicas"));
    m_replicas->setValue(static_cast<int>(std::lround(std::log2(start.replicas))));
    meshRow->addWidget(m_replicas, 1);
    meshRow->addWidget(m_replicasField);
    connect(m_replicas, &QSlider::valueChanged, this, [this](int log) { m_replicasField->setValue(1 << log); });
    connect(m_replicasField, &QSpinBox::valueChanged, this, [this](int count) {
        const QSignalBlocker quiet(m_replicas);
        m_replicas->setValue(static_cast<int>(std::lround(std::log2(count))));
        emit questionChanged();
    });
    const auto number = [this](int low, int high, const QString& none) {
        auto* box = new QSpinBox(this);
        box->setRange(low, high);
        box->setSpecialValueText(none);
        box->setKeyboardTracking(false);
        connect(box, &QSpinBox::valueChanged, this, &StateView::questionChanged);
        return box;
    };
    const auto real = [this](double high, const QString& unit, const QString& none) {
        auto* box = new QDoubleSpinBox(this);
        box->setRange(0, high);
        box->setDecimals(0);
        box->setSuffix(unit);
        box->setSpecialValueText(none);
        box->setKeyboardTracking(false);
        connect(box, &QDoubleSpinBox::valueChanged, this, &StateView::questionChanged);
        return box;
    };
    const auto text = [this](const QString& content, const QString& hint) {
        auto* field = new QLineEdit(content, this);
        field->setPlaceholderText(hint);
        connect(field, &QLineEdit::textChanged, this, &StateView::questionChanged);
        return field;
    };
    m_prefetch = number(0, 8, tr("none ahead"));
    m_perHost = number(0, 64, tr("all"));
    m_memory = real(4096, QStringLiteral(" GB"), tr("the device's"));
    m_between = real(1000, QStringLiteral(" GB/s"), tr("as within"));
    m_speeds = text(QStringLiteral("3,2,1"), {});
    m_memories = text(QStringLiteral("40,48,64"), tr("the device's"));
    m_batch = number(2, mostBatch, {});
    const QSignalBlocker quiet(this);
    m_batch->setValue(MixedQuestion().batch);
    m_ranksLink = real(1000, QStringLiteral(" GB/s"), tr("the device's"));
    m_recompute = new QCheckBox(tr("recomputed"), this);
    m_recompute->setChecked(true);
    connect(m_recompute, &QCheckBox::toggled, this, &StateView::questionChanged);
    m_cutsField = text({}, tr("spread evenly"));
    const std::vector<StateTopic> all{StateTopic::Stages, StateTopic::Mixed, StateTopic::Cuts},
        stages{StateTopic::Stages}, mixed{StateTopic::Mixed};
    add(tr("Model"), m_model,
        tr("Sizes and times are computed from the model's shape: 2 bytes of weight, 2 of gradient and 12 of optimizer "
           "state per parameter."),
        "stateModel", all);
    add(tr("Device"), m_device, tr("Peak arithmetic, memory and links of each rank."), "stateDevice", all);
    add(tr("Replicas"), mesh,
        tr("Pipelines side by side that train one model. The ranks of a pipeline, its microbatches and stages are the "
           "explorer's, on the left."),
        "stateReplicas", {StateTopic::Stages, StateTopic::Cuts});
    add(tr("Gather"), m_gather, tr("When sharded weights are gathered for an op."), "stateGather", stages);
    add(tr("Gathers ahead"), m_prefetch, tr("How many stages, or ops, ahead a gather is issued."), "statePrefetch",
        stages);
    add(tr("Reduce"), m_reduce,
        tr("When gradients are summed over the replicas: at the end of the batch, when a stage has its last gradient, "
           "or after each microbatch. \"Then update\" starts a stage's optimizer as soon as its sums have arrived."),
        "stateReduce", stages);
    add(tr("Replicas on a host"), m_perHost,
        tr("How many ranks that share a stage are on one host: gathers and reductions then go within hosts and between "
           "them."),
        "statePerHost", stages);
    add(tr("Between hosts"), m_between, tr("Bandwidth of a host's link to the others."), "stateBetween", stages);
    add(tr("Memory of a rank"), m_memory, tr("Cells that need more are hatched."), "stateMemory", stages);
    add(tr("Samples per step"), m_batch,
        tr("Over all ranks. A microbatch has one sample; every rank has at least one."), "stateBatch", mixed);
    add(tr("Speeds"), m_speeds,
        tr("Of each rank, such as 3,2,1: 1 is the chosen device, 0.5 takes twice as long. Every rank has all layers "
           "and a part of their state."),
        "stateSpeeds", mixed);
    add(tr("Memory, GB"), m_memories, tr("Of each rank, such as 40,48,64, or one size for all. Empty: the device's."),
        "stateMemories", mixed);
    add(tr("Link"), m_ranksLink,
        tr("Bandwidth of each rank's link, over which weights are gathered and gradients reduced."), "stateRanksLink",
        mixed);
    add(tr("Activations"), m_recompute,
        tr("Keeps only the input of each layer and recomputes its activations in the backward."), "stateRecompute",
        mixed);
    add(tr("Cuts"), m_cutsField,
        tr("The first layer that each replica goes back to, such as 0,8,16,24; one must be 0. Empty: replica k of N "
           "goes back through (N − k)/N of the layers."),
        "stateCuts", {StateTopic::Cuts});
}

StateTopic StateView::topic() const { return static_cast<StateTopic>(m_topics->currentIndex()); }
void StateView::setTopic(StateTopic topic) { m_topics->setCurrentIndex(static_cast<int>(topic)); }

void StateView::arrange()
{
    int at = 0;
    for (const Field& field : m_fields) {
        m_form->removeWidget(field.label);
        m_form->removeWidget(field.field);
        const bool shown = std::find(field.topics.begin(), field.topics.end(), topic()) != field.topics.end();
        field.label->setVisible(shown);
        field.field->setVisible(shown);
        if (!shown) continue;
        m_form->addWidget(field.label, at / 3 * 2, at % 3);
        m_form->addWidget(field.field, at / 3 * 2 + 1, at % 3);
        ++at;
    }
    m_pictures->setCurrentIndex(static_cast<int>(topic()));
}

void StateView::showCuts()
{
    if (topic() != StateTopic::Cuts) return;
    const CutQuestion question{m_model->currentText().toStdString(), m_device->currentData().toString().toStdString(),
                               m_replicasField->value(), m_cutsField->text().trimmed().toStdString()};
    m_cuts->setAnswer(cutSurvey(question), question);
}

Result<MixedQuestion> StateView::mixedQuestion() const
{
    MixedQuestion out;
    out.model = m_model->currentText().toStdString();
    out.device = m_device->currentData().toString().toStdString();
    STAGEWRIGHT_TRY(out.speeds, parseMixedSpeeds(m_speeds->text().toStdString()));
    STAGEWRIGHT_TRY(out.memory, parseMixedMemory(m_memories->text().toStdString(), out.speeds.size()));
    out.batch = m_batch->value();
    out.recompute = m_recompute->isChecked();
    out.bytesPerSecond = m_ranksLink->value() * 1e9;
    return out;
}

StateQuestion StateView::question(const ExploreQuestion& shape) const
{
    StateQuestion out;
    out.ranks = shape.ranks;
    out.microbatches = shape.microbatches;
    out.chunks = shape.chunks;
    out.model = m_model->currentText().toStdString();
    out.device = m_device->currentData().toString().toStdString();
    out.replicas = m_replicasField->value();
    out.rules.gather = m_gather->currentIndex() == 0 ? GatherRule::Batch : GatherRule::Microbatch;
    out.rules.prefetch = m_prefetch->value();
    out.rules.reduce = static_cast<ReduceRule>(m_reduce->currentIndex());
    out.collectives.perHost = m_perHost->value();
    if (m_perHost->value() > 0) out.collectives.algorithm = CollectiveAlgorithm::TwoLevel;
    for (const DevicePreset& preset : devicePresets())
        if (preset.name == out.device)
            out.collectives.between = {preset.linkLatency,
                                       m_between->value() > 0 ? m_between->value() * 1e9 : preset.linkBytesPerSecond};
    out.memory = m_memory->value() * 1e9;
    return out;
}

void StateView::setRows(StateRows rows, const StateQuestion& question)
{
    m_picture->setRows(std::move(rows), question);
}

void StateView::setTheme(const Theme& theme)
{
    m_picture->setTheme(theme);
    m_mixed->setTheme(theme);
    m_cuts->setTheme(theme);
}

QString StateView::caption() const
{
    switch (topic()) {
    case StateTopic::Stages: return tr("Memory and step time by what replicas share");
    case StateTopic::Mixed: return tr("Batch and state by rank of a mixed cluster");
    case StateTopic::Cuts: return tr("Partial backward: contributors by layer");
    }
    return {};
}

void StateView::paintTo(QPainter& painter, const QRectF& rect, const Theme& theme) const
{
    switch (topic()) {
    case StateTopic::Stages: m_picture->paintTo(painter, rect, theme); break;
    case StateTopic::Mixed: m_mixed->paintTo(painter, rect, theme); break;
    case StateTopic::Cuts: m_cuts->paintTo(painter, rect, theme); break;
    }
}

} // namespace stagewright
